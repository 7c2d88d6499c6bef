-- Checks of a submit, for callers in any language. Errors of class BM are batchmill's own; store/errors.py
-- turns them into typed exceptions.

-- Returns the task that a caller names. A caller that acts for one tenant may only name entry points.
create or replace function known_task(task_name text, acting_for text) returns batchmill.tasks
language plpgsql as $$
declare
    known tasks;
begin
    select * into known from tasks where name = task_name;
    if known.name is null or is_builtin(task_name) then
        raise exception 'No task "%" is registered. Check the name, or start a worker that has the task.', task_name
            using errcode = 'BM001';
    end if;
    if not known.entry and acting_for is not null then
        raise exception 'Tenants cannot submit to the task "%". To allow it, declare the task with @mill.task(entry=True).',
            task_name using errcode = 'BM014';
    end if;
    return known;
end $$;

-- Schedules fire with the rights of the engine, so a tenant's schedule is checked when it is saved.
create or replace function require_scheduled_entry() returns trigger
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
begin
    perform known_task(new.task, acting) from acting_tenant() as acting where acting is not null;
    return new;
end $$;

-- Creating a trigger, or replacing it, locks the table. So an upgrade keeps a trigger that exists.
do $$ begin
    if not exists (select from pg_trigger where tgrelid = 'schedules'::regclass and tgname = 'schedule_has_entry')
    then
        create trigger schedule_has_entry before insert or update of task, payload, key on schedules
        for each row execute function require_scheduled_entry();
    end if;
end $$;

create or replace function check_priority(priority integer) returns void
language plpgsql as $$
begin
    if priority not between -32768 and 32767 then
        raise exception 'priority must be from -32768 to 32767, not %.', priority using errcode = 'BM002';
    end if;
end $$;

-- Accepts only times that every language can represent, and delays that lead to such times.
create or replace function check_times(options json) returns void
language plpgsql as $$
begin
    if (options ->> 'run_at')::timestamptz not between '1970-01-01 UTC' and '9000-01-01 UTC' then
        raise exception 'run_at must be between the years 1970 and 9000, not %.', options ->> 'run_at'
            using errcode = 'BM002';
    end if;
    if (options ->> 'delay')::float8 not between 0 and 86400 * 3660
        or (options ->> 'expires_in')::float8 not between 0 and 86400 * 3660 then
        raise exception 'delay and expires_in must be from 0 seconds to ten years.' using errcode = 'BM002';
    end if;
end $$;

-- Repeats the checks of the Python library, for callers in other languages.
create or replace function check_job(known tasks, job json) returns void
language plpgsql as $$
declare
    payload json := case when json_typeof(job) = 'object' then job -> 'payload' end;
    has_key boolean := json_typeof(job) = 'object' and coalesce(job ->> 'key', '') <> '';
    at_most integer := known.payload_limit;
begin
    if json_typeof(job) <> 'object' then
        raise exception 'An item must be a JSON object {"payload": …} with options, not %.', left(job::text, 100)
            using errcode = 'BM002';
    end if;
    -- Most items have no options, and this test costs less than a function call.
    if (job ->> 'priority') is not null then
        perform batchmill.check_priority((job ->> 'priority')::integer);
    end if;
    if coalesce(job ->> 'run_at', job ->> 'delay', job ->> 'expires_in') is not null then
        perform batchmill.check_times(job);
    end if;
    if has_key and not known.keyed then
        raise exception 'The task "%" declares no key, so its jobs cannot have one.', known.name
            using errcode = 'BM002';
    elsif known.keyed and not has_key then
        raise exception 'The task "%" declares a key, so its jobs need one.', known.name
            using errcode = 'BM002';
    end if;
    if octet_length(payload::text) > at_most then
        raise exception 'The payload has % bytes; the limit is %.', octet_length(payload::text), at_most
            using errcode = 'BM003';
    end if;
    perform payload::jsonb;
end $$;

create or replace function check_jobs(known tasks, items json, bare boolean) returns void
language plpgsql as $$
begin
    if json_typeof(items) is distinct from 'array' then
        raise exception 'The items of a batch must be a JSON array.' using errcode = 'BM002';
    end if;
    perform check_job(known, case when bare then json_build_object('payload', item) else item end)
    from json_array_elements(items) as item;
exception when untranslatable_character then
    raise exception 'The payload contains a NUL character, which Postgres cannot store.' using errcode = 'BM002';
end $$;

create or replace function check_options(options jsonb) returns void
language plpgsql as $$
begin
    if jsonb_typeof(options) <> 'object' then
        raise exception 'options must be a JSON object.' using errcode = 'BM002';
    end if;
    if options ->> 'tenant' = '' then
        raise exception 'tenant must not be empty.' using errcode = 'BM002';
    end if;
    if (options ->> 'limit')::integer < 1 then
        raise exception 'The limit of a batch must be at least 1.' using errcode = 'BM002';
    end if;
    perform check_priority((options ->> 'priority')::integer);
    perform check_times(options::json);
end $$;
