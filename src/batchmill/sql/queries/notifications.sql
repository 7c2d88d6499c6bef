-- name: notify_batch
select batchmill.notify_batch(%(batch)s, %(targets)s::text[], %(at_most)s::integer)

-- name: notifications_of_batch
select n.id, n.tenant, n.batch_id, n.webhook_id, w.url, n.email, n.created_at, n.told_generation, n.job_id
from batchmill.notifications n left join batchmill.webhooks w on w.id = n.webhook_id
where n.batch_id = %(batch)s order by n.created_at, n.id

-- name: webhooks
select id, tenant, url, created_at, rotated_until, disabled_at, disabled_because
from batchmill.webhooks
where %(moment)s::timestamptz is null or (created_at, id) > (%(moment)s, %(id)s::uuid)
order by created_at, id limit %(count)s::bigint

-- name: webhook
select id, tenant, url, created_at, rotated_until, disabled_at, disabled_because
from batchmill.webhooks where id = %(webhook)s

-- name: save_webhook
select id, tenant, url, created_at, rotated_until, disabled_at, disabled_because, secret
from batchmill.save_webhook(%(url)s, %(tenant)s)

-- name: rotate_webhook
select id, tenant, url, created_at, rotated_until, disabled_at, disabled_because, secret
from batchmill.rotate_webhook(%(webhook)s)

-- name: enable_webhook
select id, tenant, url, created_at, rotated_until, disabled_at, disabled_because
from batchmill.enable_webhook(%(webhook)s)

-- name: delete_webhook
select id from batchmill.delete_webhook(%(webhook)s)

-- name: disable_webhook
update batchmill.webhooks set disabled_at = batchmill.clock(), disabled_because = %(reason)s
where id = %(webhook)s and disabled_at is null

-- name: webhook_to_call
-- Includes the secrets that are valid now, the newest first.
select w.id, w.url, w.disabled_at is not null as is_disabled, batchmill.clock() as now,
    array_remove(array[w.secret, case when w.rotated_until > batchmill.clock() then w.old_secret end], null)
        as secrets
from batchmill.notifications n join batchmill.webhooks w on w.id = n.webhook_id
where n.id = %(notification)s and n.tenant = %(tenant)s

-- name: email_to_write
select email from batchmill.notifications where id = %(notification)s and tenant = %(tenant)s

-- name: require_mail_room
select batchmill.require_mail_room(
    %(emails)s::text[], %(tenant)s::text, %(per_address)s::integer, %(per_tenant)s::integer)

-- name: count_mail
select batchmill.count_mail(
    %(job)s::bigint, %(email)s::text, %(tenant)s::text, %(per_address)s::integer, %(per_tenant)s::integer)
