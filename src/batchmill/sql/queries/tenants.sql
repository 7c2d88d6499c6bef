-- name: act_for_tenant
select set_config('role', 'batchmill_tenant', true), set_config('batchmill.tenant', %(acting_tenant)s, true),
    set_config('statement_timeout', coalesce(%(acting_timeout)s::text, current_setting('statement_timeout')), true)

-- name: can_act_for_tenants
select batchmill.can_act_for_tenants()

-- name: admit
select batchmill.admit(%(key)s, %(digest)s)

-- name: admit_session
select batchmill.admit_session(%(key)s::text)

-- name: lapsed_keys
select asked as id from unnest(%(keys)s::text[]) as asked
where not exists (
    select from batchmill.api_keys as key where key.id = asked and batchmill.is_valid(key, batchmill.clock()))

-- name: create_key
insert into batchmill.api_keys (id, tenant, name, digest, scopes, created_at, expires_at)
select %(id)s, %(tenant)s, %(name)s, %(digest)s::bytea, %(scopes)s::text[], batchmill.clock(),
    batchmill.clock() + make_interval(secs => %(expires_in)s::float8)
from batchmill.refuse_erased(%(tenant)s)
returning id, tenant, name, scopes, created_at, expires_at, revoked_at, last_used_at

-- name: keys
select id, tenant, name, scopes, created_at, expires_at, revoked_at, last_used_at
from batchmill.api_keys order by created_at, id

-- name: revoke_key
update batchmill.api_keys set revoked_at = coalesce(revoked_at, batchmill.clock()) where id = %(id)s
returning id, tenant, name, scopes, created_at, expires_at, revoked_at, last_used_at

-- name: set_quota
insert into batchmill.quotas (tenant, requests_per_minute, active_jobs, operations_per_day, storage_bytes, schedules,
    schedule_seconds, webhooks)
select %(tenant)s, %(requests_per_minute)s::integer, %(active_jobs)s::integer, %(operations_per_day)s::integer,
    %(storage_bytes)s::bigint, %(schedules)s::integer, %(schedule_seconds)s::float8, %(webhooks)s::integer
from batchmill.refuse_erased(%(tenant)s)
on conflict (tenant) do update set requests_per_minute = excluded.requests_per_minute,
    active_jobs = excluded.active_jobs, operations_per_day = excluded.operations_per_day,
    storage_bytes = excluded.storage_bytes, schedules = excluded.schedules,
    schedule_seconds = excluded.schedule_seconds, webhooks = excluded.webhooks
returning *

-- name: quotas
select * from batchmill.quotas order by tenant

-- name: delete_quota
delete from batchmill.quotas where tenant = %(tenant)s returning tenant

-- name: quota_use
select stored_bytes, storage_bytes, operations, operations_per_day, resets_at from batchmill.quota_use(%(tenant)s)

-- name: begin_erasure
select tenant, requested_at, extract(epoch from batchmill.clock() - requested_at)::float8 as age
from (select batchmill.begin_erasure(%(tenant)s) as requested_at, %(tenant)s::text as tenant) begun

-- name: take_erasure
select tenant, requested_at, age from batchmill.take_erasure(%(tenant)s, %(idle)s::float8) where tenant is not null

-- name: erasures
select tenant, requested_at, extract(epoch from batchmill.clock() - requested_at)::float8 as age
from batchmill.erasures order by requested_at, tenant

-- The steps of an erasure. They return no row if the erasure has ended.

-- name: batches_to_cancel
select id from batchmill.hold_erasure(%(tenant)s, %(requested_at)s::timestamptz), batchmill.batches b
where tenant = %(tenant)s and finished_at is null and (
    cancelled_at is null or batchmill.waiting_jobs(b) > 0 or on_finish is not null
    or exists (select from batchmill.notifications n where n.batch_id = b.id))
order by id limit %(most)s::integer

-- name: cancel_silently
select batchmill.cancel_silently(%(batch)s)

-- name: cancel_singles
select batchmill.cancel_singles(%(tenant)s, %(most)s::integer)
from batchmill.hold_erasure(%(tenant)s, %(requested_at)s::timestamptz)

-- name: end_running
select batchmill.end_running(%(tenant)s, %(most)s::integer)
from batchmill.hold_erasure(%(tenant)s, %(requested_at)s::timestamptz)

-- name: give_up_artifacts_of_tenant
select batchmill.give_up_artifacts_of_tenant(%(tenant)s, %(most)s::integer)
from batchmill.hold_erasure(%(tenant)s, %(requested_at)s::timestamptz)

-- name: artifacts_to_erase
select id, storage_key from batchmill.hold_erasure(%(tenant)s, %(requested_at)s::timestamptz), batchmill.artifacts
where tenant = %(tenant)s and collect_at <= batchmill.clock() order by id limit %(most)s::integer

-- name: unsettled
select jobs, files, transactions from batchmill.unsettled(%(tenant)s)

-- name: tables_to_erase
select name, pages from batchmill.tables_to_erase()

-- name: erase_pages
select batchmill.erase_pages(%(table)s, %(tenant)s, %(first)s::bigint, %(pages)s::bigint)
from batchmill.hold_erasure(%(tenant)s, %(requested_at)s::timestamptz)

-- name: erase_lanes
select batchmill.erase_lanes(%(tenant)s)
from batchmill.hold_erasure(%(tenant)s, %(requested_at)s::timestamptz)

-- name: erase_names
select batchmill.erase_names(%(tenant)s)
from batchmill.hold_erasure(%(tenant)s, %(requested_at)s::timestamptz)

-- name: tenant_remains
select name, rows from batchmill.tenant_remains(%(tenant)s)

-- name: take_any_time
select set_config('statement_timeout', '0', true)

-- name: end_erasure
select batchmill.end_erasure(%(tenant)s, %(requested_at)s::timestamptz)
