-- Registering tasks and workers, and renewing leases.

-- If `is_entry` is null, a known task keeps its value, and a new task is not an entry point.
create or replace function register_task(
    task_name text, retry jsonb, keyed boolean, payload_limit integer, declared jsonb,
    is_entry boolean default null
) returns void
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    scope text;
begin
    insert into tasks (name, retry, keyed, payload_limit, entry, registered_at)
    values (task_name, register_task.retry, register_task.keyed, register_task.payload_limit,
        coalesce(is_entry, false), clock())
    on conflict (name) do update set retry = excluded.retry, keyed = excluded.keyed,
        payload_limit = excluded.payload_limit, entry = coalesce(is_entry, tasks.entry),
        registered_at = excluded.registered_at
    where (tasks.retry, tasks.keyed, tasks.payload_limit, tasks.entry)
        is distinct from (excluded.retry, excluded.keyed, excluded.payload_limit,
            coalesce(is_entry, tasks.entry));
    foreach scope in array array['', '/batch:*', '/tenant:*', '/key:*'] loop
        perform declare_limit('task:' || task_name || scope,
            (declared -> scope ->> 'slots')::integer, (declared -> scope ->> 'rate')::integer,
            (declared -> scope ->> 'period')::float8);
    end loop;
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
