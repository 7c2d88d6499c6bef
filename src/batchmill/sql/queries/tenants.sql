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
values (%(id)s, %(tenant)s, %(name)s, %(digest)s, %(scopes)s, batchmill.clock(),
    batchmill.clock() + make_interval(secs => %(expires_in)s::float8))
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
values (%(tenant)s, %(requests_per_minute)s::integer, %(active_jobs)s::integer, %(operations_per_day)s::integer,
    %(storage_bytes)s::bigint, %(schedules)s::integer, %(schedule_seconds)s::float8, %(webhooks)s::integer)
on conflict (tenant) do update set requests_per_minute = excluded.requests_per_minute,
    active_jobs = excluded.active_jobs, operations_per_day = excluded.operations_per_day,
    storage_bytes = excluded.storage_bytes, schedules = excluded.schedules,
    schedule_seconds = excluded.schedule_seconds, webhooks = excluded.webhooks
returning *

-- name: quotas
select * from batchmill.quotas order by tenant

-- name: delete_quota
delete from batchmill.quotas where tenant = %(tenant)s returning tenant
