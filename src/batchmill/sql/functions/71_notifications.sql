-- Notifications about finished batches. A target is the URL of a webhook or a mail address. The payload of
-- the job that notifies a target contains only an id, so that payloads contain no secrets and no addresses.

-- The task that notifies a target. Rejects characters that could break out of a line of a request or a mail.
create or replace function notification_task(target text) returns text
language plpgsql immutable as $$
begin
    if length(target) <= 2000 and target ~ '^https?://[!-~]+$' and target !~ '^https?://[^/?#]*@' then
        return 'batchmill.webhook';
    elsif length(target) <= 254 and target
        ~ '^[A-Za-z0-9.!#$%&''*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*$' then
        return 'batchmill.email';
    end if;
    raise exception 'A notification needs an http or https URL without a password, or an email address, not "%".',
        left(target, 100) using errcode = 'BM002';
end $$;

-- Refuses a target that no worker can notify: a worker that can do so registers the task.
create or replace function require_notification_task(task text) returns void
language plpgsql as $$
begin
    if not exists (select from tasks where name = task) then
        raise exception '%', case task
            when 'batchmill.email' then 'No worker sends mail: set BATCHMILL_SMTP_URL and '
                'BATCHMILL_MAIL_FROM for a worker that has batchmill[notify] installed.'
            else 'No worker calls webhooks: start a worker that has batchmill[notify] installed.' end
            using errcode = 'BM002';
    end if;
end $$;

create or replace function targets_in(option jsonb) returns text[]
language plpgsql immutable as $$
begin
    if jsonb_typeof(option) <> 'array' then
        raise exception 'notify must be a JSON array of URLs and email addresses.' using errcode = 'BM002';
    end if;
    return array(select jsonb_array_elements_text(option));
end $$;

-- Processes targets in one order, so that two callers with the same new webhooks cannot deadlock.
create or replace function add_notifications(b batches, targets text[], moment timestamptz) returns void
language plpgsql as $$
declare
    target text;
begin
    foreach target in array array(select distinct unnest(targets) order by 1) loop
        perform require_notification_task(notification_task(target));
        insert into notifications (tenant, batch_id, webhook_id, email, created_at, expires_at)
        select b.tenant, b.id, case when is_webhook then webhook_for(b.tenant, target, moment) end,
            case when not is_webhook then target end, moment, b.expires_at + interval '2 days'
        from (select notification_task(target) = 'batchmill.webhook') kind (is_webhook)
        on conflict do nothing;
    end loop;
    perform refuse_erased(b.tenant);
    if (select count(*) from notifications where batch_id = b.id) > 20 then
        raise exception 'A batch can notify at most 20 webhooks and email addresses.' using errcode = 'BM002';
    end if;
end $$;

-- Adds notifications to a batch. If the batch has finished, sends them at once. The batch cannot finish
-- meanwhile, because this function holds its row.
create or replace function notify_batch(of_batch uuid, targets text[]) returns void
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    moment timestamptz;
    batch batches;
begin
    select * into batch from batches where id = of_batch and is_own(tenant) for update;
    if batch.id is null then
        raise exception 'There is no batch %.', of_batch using errcode = 'BM005';
    end if;
    moment := clock();
    perform add_notifications(batch, targets, moment);
    if batch.finished_at is not null then
        perform notify_finished(array[of_batch], moment);
    end if;
end $$;

-- The same with a lower limit of targets. It counts while the batch is locked, so the limit is exact.
create or replace function notify_batch(of_batch uuid, targets text[], at_most integer) returns void
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
begin
    perform notify_batch(of_batch, targets);
    if (select count(*) from notifications where batch_id = of_batch) > at_most then
        raise exception 'Batch % already notifies % targets, which is the limit.', of_batch, at_most using errcode = 'BM006';
    end if;
end $$;

-- Creates the jobs that notify about finished batches, one for each notification and generation. Their
-- content is fixed here and does not change with the batch. A webhook that is disabled or deleted gets no
-- job.
create or replace function notify_finished(batch_ids uuid[], moment timestamptz) returns void
language plpgsql as $$
begin
    with notified as (
        update notifications n
        set told_generation = b.generation,
            job_id = case when email is not null or exists (
                select from webhooks w where w.id = n.webhook_id and w.disabled_at is null)
                then nextval(pg_get_serial_sequence('batchmill.jobs', 'id')) end
        from batches b
        where n.batch_id = any (batch_ids) and b.id = n.batch_id and n.told_generation < b.generation
        returning n.id, n.job_id, n.email, b as batch
    )
    insert into jobs (id, position, task, tenant, state, run_at, payload, created_at, expires_on,
        submitted_by)
    overriding system value
    select job_id, 0, case when email is null then 'batchmill.webhook' else 'batchmill.email' end,
        (batch).tenant, 'ready', moment, json_build_object(
            'notification_id', id, 'finished_at', (batch).finished_at, 'task', (batch).task,
            'labels', (batch).labels - 'traceparent', 'batch', batch_summary(batch)),
        moment, greatest((batch).expires_on, day_of(moment) + 7), pg_current_xact_id()
    from notified where job_id is not null;
    perform notify_workers('{batchmill.webhook,batchmill.email}');
end $$;

-- A random secret of 32 bytes. The database generates it, so that no statement contains it.
create or replace function new_secret() returns text
language sql volatile
return 'whsec_' || encode(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
    || uuid_send(gen_random_uuid())), 'base64');

-- Returns the webhook of a tenant for this URL, and creates it if it does not exist.
create or replace function webhook_for(of_tenant text, of_url text, moment timestamptz) returns uuid
language plpgsql as $$
declare
    known uuid;
begin
    loop
        select id into known from webhooks where tenant = of_tenant and url = of_url;
        exit when known is not null;
        perform check_webhook_quota(of_tenant);
        insert into webhooks (tenant, url, secret, created_at)
        values (of_tenant, of_url, new_secret(), moment)
        on conflict do nothing returning id into known;
        exit when known is not null;
    end loop;
    perform refuse_erased(of_tenant);
    return known;
end $$;

-- Refuses a new webhook if the tenant has reached its quota. The quota does not apply to webhooks that
-- operators add.
create or replace function check_webhook_quota(of_tenant text) returns void
language plpgsql as $$
declare
    quota quotas;
    used bigint;
begin
    if acting_tenant() is null then
        return;
    end if;
    quota := quota_of(of_tenant);
    -- Serialises concurrent calls for one tenant.
    perform pg_advisory_xact_lock(hashtext('batchmill.webhooks'), hashtext(of_tenant));
    used := (select count(*) from webhooks where tenant = of_tenant);
    if used >= quota.webhooks then
        perform refuse_over('webhooks', used, quota.webhooks, null);
    end if;
end $$;

create or replace function save_webhook(of_url text, of_tenant text) returns webhooks
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    saved uuid;
    known webhooks;
begin
    if notification_task(of_url) <> 'batchmill.webhook' then
        raise exception 'A webhook must be an http or https URL, not "%".', left(of_url, 100)
            using errcode = 'BM002';
    end if;
    perform require_notification_task('batchmill.webhook');
    saved := webhook_for(coalesce(acting_tenant(), of_tenant), of_url, clock());
    select * into known from webhooks where id = saved;
    return known;
end $$;

-- Signs with a new secret from now on. The previous secret signs too for 24 hours.
create or replace function rotate_webhook(of_webhook uuid) returns webhooks
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    changed webhooks;
begin
    update webhooks
    set secret = new_secret(), old_secret = secret, rotated_until = clock() + interval '24 hours'
    where id = of_webhook and is_own(tenant) returning * into changed;
    return known_webhook(changed, of_webhook);
end $$;

create or replace function enable_webhook(of_webhook uuid) returns webhooks
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    changed webhooks;
begin
    update webhooks set disabled_at = null, disabled_because = null
    where id = of_webhook and is_own(tenant) returning * into changed;
    return known_webhook(changed, of_webhook);
end $$;

create or replace function delete_webhook(of_webhook uuid) returns webhooks
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    gone webhooks;
begin
    delete from webhooks where id = of_webhook and is_own(tenant) returning * into gone;
    return known_webhook(gone, of_webhook);
end $$;

create or replace function known_webhook(known webhooks, of_webhook uuid) returns webhooks
language plpgsql as $$
begin
    if known.id is null then
        raise exception 'There is no webhook %.', of_webhook using errcode = 'BM005';
    end if;
    return known;
end $$;

-- The digest that identifies an address in the counts. They outlive the batch, but do not keep the address.
create or replace function mail_recipient(email text) returns text
language sql stable as $$ select batchmill.topic(lower(email)) $$;

-- The times of the mails of the last hour for a tenant or to a recipient, the newest first. Leaves out the
-- mail of `but_job`.
create or replace function mails_of(of_tenant text, of_recipient text, but_job bigint) returns timestamptz[]
language sql stable
return array(
    select sent_at from mails
    where tenant = of_tenant and sent_at > clock() - interval '1 hour' and job_id is distinct from but_job
    union all
    select sent_at from mails
    where recipient = of_recipient and sent_at > clock() - interval '1 hour' and job_id is distinct from but_job
    order by sent_at desc);

-- Refuses an address or a tenant that has reached its limit of mails in the last hour. It does not count
-- anything: mails are counted when they are sent.
create or replace function require_mail_room(emails text[], of_tenant text, per_address integer, per_tenant integer)
returns void
language plpgsql stable set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    email text;
begin
    perform require_fewer_mails('This tenant can send % mails per hour, and has sent %.',
        mails_of(of_tenant, null, null), per_tenant);
    foreach email in array emails loop
        perform require_fewer_mails('An address can get % mails per hour, and one of these got %.',
            mails_of(null, mail_recipient(email), null), per_address);
    end loop;
end $$;

create or replace function require_fewer_mails(sentence text, sent timestamptz[], most integer) returns void
language plpgsql stable as $$
declare
    moment timestamptz := clock();
    used integer := cardinality(sent);
begin
    if used >= most then
        raise exception '%', format(replace(sentence, '%', '%s'), most, used) using errcode = 'BM011',
            detail = json_build_object('used', used, 'limit', most, 'retry_after',
                extract(epoch from coalesce(sent[most], moment) + interval '1 hour' - moment))::text;
    end if;
end $$;

-- Counts the mail that a job is about to send. A job counts once, at the time of its last try. Returns false
-- if the address or the tenant has reached its limit for the last hour. The call is its own transaction, so
-- that it holds its locks only briefly.
create or replace function count_mail(of_job bigint, email text, of_tenant text, per_address integer, per_tenant integer)
returns boolean
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    of_recipient text := mail_recipient(email);
begin
    -- Serialises calls that count for the same tenant or recipient. All calls take the locks in one order.
    perform pg_advisory_xact_lock(hashtext('batchmill.mails'), locks.who) from (
        select distinct hashtext(name) as who from unnest(array['for:' || of_tenant, 'to:' || of_recipient]) as name
        order by who) as locks;
    delete from mails where ctid in (
        select ctid from mails where sent_at <= clock() - interval '1 hour' limit 100 for update skip locked);
    if cardinality(mails_of(of_tenant, null, of_job)) >= per_tenant
        or cardinality(mails_of(null, of_recipient, of_job)) >= per_address then
        return false;
    end if;
    insert into mails (job_id, tenant, recipient, sent_at) values (of_job, of_tenant, of_recipient, clock())
    on conflict (job_id) do update set sent_at = excluded.sent_at;
    return true;
end $$;
