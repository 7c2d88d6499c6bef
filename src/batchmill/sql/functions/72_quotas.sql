-- API keys of the service, and quotas of tenants.

-- Admits a request. Returns the tenant, scopes and request limit of its key, or null if the key is not valid.
-- Counts the request if its tenant has a request limit; `retry_after` is set if that is used up. Until the first key is
-- created, a request without a key is admitted as the tenant `default`.
create or replace function admit(key_id text, key_digest bytea) returns json
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    moment timestamptz := clock();
    known api_keys;
begin
    if key_id is null then
        if exists (select from api_keys) or (select erased_keys from last_erasure) then
            return null;
        end if;
        known.tenant := 'default';
        known.scopes := '{read,submit,admin}';
    else
        select * into known from api_keys
        where id = key_id and digest = key_digest and is_valid(api_keys, moment);
        if known.id is null then
            return null;
        end if;
    end if;
    return admitted(known, moment);
end $$;

-- The same for a request with a session. Its cookie is signed, which proves that the caller had the key.
create or replace function admit_session(key_id text) returns json
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    moment timestamptz := clock();
    known api_keys;
begin
    select * into known from api_keys where id = key_id and is_valid(api_keys, moment);
    return case when known.id is not null then admitted(known, moment) end;
end $$;

create or replace function admitted(known api_keys, moment timestamptz) returns json
language plpgsql as $$
declare
    quota quotas := quota_of(known.tenant);
begin
    -- Once a minute is enough to show which keys are in use.
    update api_keys set last_used_at = moment
    where id = known.id and (last_used_at is null or last_used_at < moment - interval '1 minute');
    return json_build_object(
        'key', known.id, 'tenant', known.tenant, 'scopes', known.scopes, 'limit', quota.requests_per_minute,
        'retry_after', count_request(known.tenant, quota.requests_per_minute, moment));
end $$;

create or replace function is_valid(key api_keys, moment timestamptz) returns boolean
language sql immutable
return key.revoked_at is null and (key.expires_at is null or key.expires_at > moment);

-- The quota of a tenant: its own, or the default one. The numbers of schedules and webhooks are bounded even
-- without a quota.
create or replace function quota_of(of_tenant text) returns quotas
language plpgsql stable as $$
declare
    quota quotas;
begin
    select * into quota from quotas where tenant in (of_tenant, '*') order by tenant = '*' limit 1;
    quota.schedules := coalesce(quota.schedules, 100);
    quota.schedule_seconds := coalesce(quota.schedule_seconds, 60);
    quota.webhooks := coalesce(quota.webhooks, 100);
    return quota;
end $$;

-- Counts a request. Returns the seconds until the next request is allowed if the quota of this minute is used
-- up.
create or replace function count_request(of_tenant text, most integer, moment timestamptz) returns float8
language plpgsql as $$
declare
    this_minute timestamptz := date_trunc('minute', moment);
begin
    if most is null then
        return null;
    end if;
    perform refuse_erased(of_tenant);
    insert into usage (tenant, minute, requests, day) values (of_tenant, this_minute, 1, day_of(moment))
    on conflict (tenant) do update
    set requests = case usage.minute when this_minute then usage.requests else 0 end + 1,
        minute = this_minute
    where usage.minute <> this_minute or usage.requests < most;
    return case when not found then extract(epoch from this_minute + interval '1 minute' - moment) end;
end $$;

-- Counts new jobs of a tenant against its quota. Holds the tenant's row until commit, so that two concurrent
-- calls cannot both pass.
create or replace function count_jobs(of_tenant text, added integer) returns void
language plpgsql as $$
declare
    moment timestamptz := clock();
    today date := day_of(moment);
    quota quotas := quota_of(of_tenant);
    used integer;
    active bigint;
begin
    if added = 0 or num_nonnulls(quota.operations_per_day, quota.active_jobs) = 0 then
        return;
    end if;
    insert into usage (tenant, minute, day, operations)
    values (of_tenant, date_trunc('minute', moment), today, added)
    on conflict (tenant) do update
    set operations = case usage.day when today then usage.operations else 0 end + added, day = today
    returning operations into used;
    if used > quota.operations_per_day then
        perform refuse_over('jobs per day', used - added, quota.operations_per_day,
            extract(epoch from today + 1 - moment));
    end if;
    if quota.active_jobs is not null then
        active := active_jobs(of_tenant, quota.active_jobs + added);
        if active > quota.active_jobs then
            perform refuse_over('active jobs', active - added, quota.active_jobs, null);
        end if;
    end if;
end $$;

-- Does the same for jobs that a tenant itself submits or retries. The quota does not apply to jobs that
-- operators submit.
create or replace function count_own_jobs(added integer) returns void
language plpgsql as $$
declare
    own text := acting_tenant();
begin
    if own is not null then
        perform count_jobs(own, added);
    end if;
end $$;

-- The number of unfinished jobs of a tenant. Jobs without a batch count up to `at_most`. Jobs that the engine
-- creates to send notifications do not count.
create or replace function active_jobs(of_tenant text, at_most integer) returns bigint
language plpgsql stable as $$
begin
    return (
        select coalesce(sum(total - completed - failed - cancelled), 0) from batches
        where tenant = of_tenant and finished_at is null
    ) + (
        select count(*) from (
            (select from jobs where tenant = of_tenant and lane_id is null and not is_builtin(task)
             limit at_most)
            union all
            (select from lanes l join jobs j on j.lane_id = l.id
             where l.tenant = of_tenant and l.batch_id is null and not is_builtin(l.task)
             limit at_most)) single);
end $$;

create or replace function refuse_over(what text, used bigint, most bigint, retry_after float8) returns void
language plpgsql as $$
begin
    raise exception 'The quota of this tenant is % %, and it already has %.', most, what, used using errcode = 'BM011',
        detail = json_build_object('used', used, 'limit', most, 'retry_after', retry_after)::text;
end $$;

-- How much of its storage and of today's jobs a tenant has used, and how much it may use; null means no limit. A tenant
-- gets its own. The bound on storage with the least room applies, as in grow_artifact().
create or replace function quota_use(
    of_tenant text, out stored_bytes bigint, out storage_bytes bigint, out operations integer,
    out operations_per_day integer, out resets_at timestamptz
)
language plpgsql stable security definer set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    own text := coalesce(acting_tenant(), of_tenant);
    today date := day_of(clock());
    quota quotas := quota_of(own);
    used usage;
begin
    select * into used from usage u where u.tenant = own;
    select b.used, b.most into stored_bytes, storage_bytes from (values
        (1, coalesce(used.stored_bytes, 0), quota.storage_bytes),
        (2, coalesce((select g.stored_bytes from storage_groups g where g.name = group_of(own)), 0),
            (select q.storage_bytes from quotas q where q.tenant = group_of(own)))) as b (place, used, most)
    order by b.most - b.used, b.place limit 1;
    operations := case when used.day = today then used.operations else 0 end;
    operations_per_day := quota.operations_per_day;
    resets_at := (today + 1)::timestamp at time zone 'UTC';
end $$;
