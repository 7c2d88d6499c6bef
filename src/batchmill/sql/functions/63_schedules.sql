-- Schedules: saving them, and starting jobs when they are due.

-- Creates or changes the schedule of this name, which runs a task by a cron expression. The caller has parsed
-- the expression: `first_at` is the next time it fires, `seconds` the shortest interval between two firings.
create or replace function save_schedule(
    of_tenant text, of_name text, of_task text, of_payload json, of_key text, of_priority integer, of_cron text,
    of_timezone text, of_missed text, first_at timestamptz, seconds double precision
) returns schedules
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    owner text := coalesce(acting_tenant(), of_tenant);
    known tasks := known_task(of_task, acting_tenant());
    saved schedules;
begin
    perform check_job(known, json_build_object('payload', of_payload, 'key', of_key, 'priority', of_priority));
    perform check_scheduled(of_payload);
    if acting_tenant() is not null then
        perform check_schedule_quota(owner, of_name, seconds);
    end if;
    insert into schedules (name, task, payload, key, tenant, priority, cron, timezone, missed, next_at)
    values (of_name, of_task, of_payload, of_key, owner, of_priority, of_cron, of_timezone, of_missed, first_at)
    on conflict (tenant, name) do update set task = excluded.task, payload = excluded.payload,
        key = excluded.key, priority = excluded.priority, missed = excluded.missed,
        next_at = case when (schedules.cron, schedules.timezone) = (excluded.cron, excluded.timezone)
            then schedules.next_at else excluded.next_at end,
        cron = excluded.cron, timezone = excluded.timezone, error = null
    returning * into saved;
    perform refuse_erased(owner);
    perform pg_notify('batchmill', 'upkeep');
    return saved;
end $$;

-- Serialises concurrent calls for one tenant.
create or replace function check_schedule_quota(of_tenant text, of_name text, seconds double precision) returns void
language plpgsql as $$
declare
    quota quotas := quota_of(of_tenant);
    others bigint;
begin
    if seconds < quota.schedule_seconds then
        raise exception 'Schedules of this tenant must not fire more often than every % seconds; this one fires every % seconds.',
            quota.schedule_seconds, seconds using errcode = 'BM002';
    end if;
    perform pg_advisory_xact_lock(hashtext('batchmill.schedules'), hashtext(of_tenant));
    others := (select count(*) from schedules where tenant = of_tenant and name <> of_name);
    if others >= quota.schedules then
        perform refuse_over('schedules', others, quota.schedules, null);
    end if;
end $$;

create or replace function pause_schedule(of_tenant text, of_name text, is_paused boolean) returns schedules
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    changed schedules;
begin
    update schedules set paused = is_paused
    where tenant = of_tenant and name = of_name and is_own(tenant)
    returning * into changed;
    perform pg_notify('batchmill', 'upkeep');
    return changed;
end $$;

create or replace function delete_schedule(of_tenant text, of_name text) returns text
language sql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
    delete from schedules where tenant = of_tenant and name = of_name and is_own(tenant) returning name
$$;

-- Files live as long as the batch or job that names them, but a schedule has no end, so its payload may name
-- none. Lists show all payloads, so payloads must be small.
create or replace function check_scheduled(payload json) returns void
language plpgsql as $$
declare
    at_most constant integer := 65536;
begin
    if octet_length(payload::text) > at_most then
        raise exception 'The payload of a schedule has % bytes; the limit is %. For larger data, use a URL.',
            octet_length(payload::text), at_most using errcode = 'BM003';
    end if;
    if batchmill.named_artifacts(payload::text) <> '{}' then
        raise exception 'A schedule cannot refer to an artifact, which can expire before it fires. Use a URL to fetch.'
            using errcode = 'BM002';
    end if;
end $$;

-- Fires a schedule for the given times and advances it, unless another call has advanced it meanwhile. A
-- schedule that cannot fire, or whose tenant may have no more jobs, also advances and records the reason, so
-- that it does not block other due schedules.
create or replace function fire_schedule(
    of_tenant text, schedule_name text, expected timestamptz, times timestamptz[], then_at timestamptz,
    reason text
) returns boolean
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    fired schedules;
    due timestamptz;
begin
    update schedules set next_at = then_at, error = reason
    where tenant = of_tenant and name = schedule_name and next_at = expected and not paused
    returning * into fired;
    if fired.name is null then
        return false;
    end if;
    foreach due in array times loop
        begin
            perform enqueue(fired.task, fired.payload, jsonb_build_object(
                'tenant', fired.tenant, 'priority', fired.priority, 'key', fired.key,
                'labels', jsonb_build_object('schedule', fired.name, 'due', due)));
            perform count_jobs(fired.tenant, 1);
            fired.last_at := due;
        exception when sqlstate 'BM011' then
            fired.error := sqlerrm;
            exit;
        end;
    end loop;
    if times <> '{}' then
        update schedules set last_at = fired.last_at, error = fired.error
        where tenant = of_tenant and name = schedule_name;
    end if;
    return true;
end $$;
