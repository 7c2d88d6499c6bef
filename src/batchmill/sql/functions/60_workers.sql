-- Registering tasks and workers, and renewing leases.

-- If `is_entry` or `priority` is null, a known task keeps its value. A new task is then not an entry point, and its
-- priority is 0. `pipeline` has the limits of the task's pipeline, if the code declares some.
create or replace function register_task(
    task_name text, retry jsonb, keyed boolean, payload_limit integer, declared jsonb, is_entry boolean,
    priority integer, pipeline jsonb
) returns void
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    insert into tasks (name, retry, keyed, payload_limit, entry, declared_priority, registered_at)
    values (task_name, register_task.retry, register_task.keyed, register_task.payload_limit,
        coalesce(is_entry, false), coalesce(register_task.priority, 0), clock())
    on conflict (name) do update set retry = excluded.retry, keyed = excluded.keyed,
        payload_limit = excluded.payload_limit, entry = coalesce(is_entry, tasks.entry),
        declared_priority = coalesce(register_task.priority, tasks.declared_priority),
        registered_at = excluded.registered_at
    where (tasks.retry, tasks.keyed, tasks.payload_limit, tasks.entry, tasks.declared_priority)
        is distinct from (excluded.retry, excluded.keyed, excluded.payload_limit,
            coalesce(is_entry, tasks.entry), coalesce(register_task.priority, tasks.declared_priority));
    perform declare_limits('task:' || task_name, declared);
    if pipeline is not null then
        perform declare_limits('pipeline:' || pipeline_of(task_name), pipeline);
    end if;
end $$;

-- Declares the limits of a task or pipeline, by the suffix of their names.
create or replace function declare_limits(prefix text, declared jsonb) returns void
language sql
begin atomic
    select declare_limit(prefix || suffix, (declared -> suffix ->> 'slots')::integer,
        (declared -> suffix ->> 'rate')::integer, (declared -> suffix ->> 'period')::float8)
    from unnest(array['', '/batch:*', '/tenant:*', '/key:*']) as suffix;
end;

-- Overrides the priority that the code declares; null restores it. Returns the priority, or null if there is no such
-- task.
create or replace function set_priority(of_task text, of_priority integer) returns integer
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    changed integer;
begin
    update tasks set set_priority = of_priority where name = of_task returning priority into changed;
    return changed;
end $$;

create or replace function register_worker(
    worker_name text, version text, tasks text[], concurrency integer, lease double precision
) returns bigint
language sql set search_path = batchmill, pg_catalog, pg_temp as $$
    insert into workers (name, version, tasks, concurrency, started_at, lease_until)
    values (worker_name, version, tasks, concurrency, clock(), clock() + make_interval(secs => lease))
    returning id
$$;

-- Renews a worker's lease. Returns the cancelled jobs that it must stop. Returns null if the worker was
-- marked lost; its jobs then belong to other workers.
create or replace function renew_lease(worker bigint, lease double precision) returns bigint[]
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
begin
    update workers set lease_until = clock() + make_interval(secs => lease)
    where id = worker and state in ('live', 'draining');
    if not found then
        return null;
    end if;
    return array(
        select id from jobs where cancelled_at is not null and worker_id = worker and state = 'running');
end $$;

-- Stores what a worker reports about its slots. For a broken slot, the worker sends for how many `seconds` it has
-- been broken; the row has `since`, by the database's clock.
create or replace function report_slots(worker bigint, of_pools jsonb, of_slots jsonb) returns void
language sql set search_path = batchmill, pg_catalog, pg_temp as $$
    insert into worker_slots (worker_id, pools, slots)
    select worker, of_pools, coalesce(jsonb_agg(case when slot ? 'seconds' then slot - 'seconds' || jsonb_build_object(
        'since', clock() - make_interval(secs => (slot ->> 'seconds')::float8)) else slot end), '[]')
    from jsonb_array_elements(of_slots) as slot
    on conflict (worker_id) do update set pools = excluded.pools, slots = excluded.slots
$$;

-- All running jobs, by lane. Most come before the waiting jobs in the index, and the lane knows their number,
-- so the scan reads few waiting jobs.
create or replace function running_jobs() returns setof jobs
language sql stable
set search_path = batchmill, pg_catalog, pg_temp set enable_seqscan = off as $$
    select j.* from lanes l
    cross join lateral (
        select * from jobs where lane_id = l.id and not is_scheduled and state = 'running'
        order by -priority, id + 0 limit l.running) j
    where l.is_busy
$$;
