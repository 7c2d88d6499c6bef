-- What a tenant may use cannot be bypassed, and neither can the wall between tenants.

set local search_path = batchmill, pg_catalog;

-- These hold for tenants without a quota of their own too: see quota_of() in functions/72_quotas.sql.
alter table quotas
    add column schedules integer not null default 100 check (schedules >= 0),
    add column schedule_seconds double precision not null default 60 check (schedule_seconds >= 1),
    add column webhooks integer not null default 100 check (webhooks >= 0);

-- To count a tenant's jobs without a batch among its active ones.
create index jobs_single on jobs (tenant) where batch_id is null;

-- What a tenant and those named after it have in the store together: see group_of() in functions/70_artifacts.sql.
create table storage_groups (
    name text primary key,
    stored_bytes bigint not null default 0 check (stored_bytes >= 0)
) with (fillfactor = 50);
-- A transaction that adds bytes meanwhile waits, and then counts them here too.
lock table usage in share row exclusive mode;
insert into storage_groups (name, stored_bytes)
select split_part(tenant, '/', 1), sum(stored_bytes) from usage group by 1;

-- Topics of notices are digests with this key.
create table topic_key (
    is_only boolean primary key default true check (is_only),
    secret bytea not null
);
insert into topic_key (secret)
values (sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())));

-- functions/90_guard.sql makes them anew, with a condition on the session.
do $$
declare
    guarded regclass;
begin
    for guarded in
        select p.polrelid from pg_policy p join pg_class c on c.oid = p.polrelid
        where p.polname = 'tenant' and c.relnamespace = 'batchmill'::regnamespace
    loop
        execute format('drop policy tenant on %s', guarded);
    end loop;
end $$;
