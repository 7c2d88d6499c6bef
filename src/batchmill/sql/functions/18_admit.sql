-- Lets a request in: whose key it is, what that may do, and what its tenant may use; null if there is
-- no such key. The request is counted where its tenant has a bound on them; `retry_after` says that it
-- is used up. While there is no key at all, a request without one is let in as the tenant `default`.
create function admit(key_id text, key_digest bytea) returns json
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    moment timestamptz := clock();
    known api_keys;
    quota quotas;
begin
    if key_id is null then
        if exists (select from api_keys) then
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
        -- To see which keys are in use, once a minute is enough.
        update api_keys set last_used_at = moment
        where id = known.id and (last_used_at is null or last_used_at < moment - interval '1 minute');
    end if;
    quota := quota_of(known.tenant);
    return json_build_object(
        'key', known.id, 'tenant', known.tenant, 'scopes', known.scopes, 'quota', quota,
        'retry_after', count_request(known.tenant, quota.requests_per_minute, moment));
end $$;

create function is_valid(key api_keys, moment timestamptz) returns boolean
language sql immutable
return key.revoked_at is null and (key.expires_at is null or key.expires_at > moment);

create function quota_of(of_tenant text) returns quotas
language sql stable
begin atomic
    select * from quotas where tenant in (of_tenant, '*') order by tenant = '*' limit 1;
end;

-- The seconds until there may be another request, if the minute's are used up.
create function count_request(of_tenant text, most integer, moment timestamptz) returns float8
language plpgsql as $$
declare
    this_minute timestamptz := date_trunc('minute', moment);
begin
    if most is null then
        return null;
    end if;
    insert into usage (tenant, minute, requests, day) values (of_tenant, this_minute, 1, day_of(moment))
    on conflict (tenant) do update
    set requests = case usage.minute when this_minute then usage.requests else 0 end + 1,
        minute = this_minute
    where usage.minute <> this_minute or usage.requests < most;
    return case when not found then extract(epoch from this_minute + interval '1 minute' - moment) end;
end $$;

-- Counts jobs that a tenant has just submitted or put back to work against what it may have. Its row is
-- held until that commits, so two requests at once cannot both pass. Returns how many those are.
create function count_operations(added integer, most_active integer, most_a_day integer) returns integer
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    moment timestamptz := clock();
    today date := day_of(moment);
    used integer;
    active bigint;
begin
    insert into usage (tenant, minute, day, operations)
    values (acting_tenant(), date_trunc('minute', moment), today, added)
    on conflict (tenant) do update
    set operations = case usage.day when today then usage.operations else 0 end + added, day = today
    returning operations into used;
    if used > most_a_day then
        perform refuse_over('jobs a day', used - added, most_a_day, extract(epoch from today + 1 - moment));
    end if;
    if most_active is not null then
        active := (
            select sum(total - completed - failed - cancelled) from batches
            where tenant = acting_tenant() and finished_at is null);
        if active > most_active then
            perform refuse_over('active jobs', active - added, most_active, null);
        end if;
    end if;
    return added;
end $$;

create function refuse_over(what text, used bigint, most bigint, retry_after float8) returns void
language plpgsql as $$
begin
    raise exception 'This tenant may have % %, and has %.', most, what, used using errcode = 'BM011',
        detail = json_build_object('used', used, 'limit', most, 'retry_after', retry_after)::text;
end $$;
