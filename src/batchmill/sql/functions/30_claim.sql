-- Claims: a worker takes jobs. `claim_jobs` is the outline: submitted single jobs start at once or go into their
-- lanes. Then it locks lanes (31_open_lanes.sql) with their limits and batches (`lock_above` in 13_lanes.sql), and
-- `claim_from_lanes` chooses jobs (32_take.sql), starts them (33_start.sql) and builds the answer.

-- What a worker asks for: up to `want` jobs, at most `wants[i]` of `tasks[i]`, and up to `prefetch` more from
-- lanes that no limit counts. In each task, tenants take turns, starting after `last_tenants[i]`. `last_tenant`
-- is the tenant that was served last in any task. `seed` is a number that differs from claim to claim; it
-- decides which of a tenant's tasks goes first. Submitted jobs are looked up from position `since` on.
do $$ begin
    create type demand as (
        worker bigint, tasks text[], wants integer[], want integer, prefetch integer, since xid8,
        last_tenants text[], last_tenant text, seed bigint);
exception when duplicate_object then null;
end $$;

-- Starts jobs for a worker. Returns the jobs and their lanes by columns, the seconds until there may be more
-- jobs, whether no other worker is live, the position from which the next claim looks for submitted jobs, and
-- the tenants that were served last.
create or replace function claim_jobs(
    worker bigint, tasks text[], wants integer[], want integer, prefetch integer, since xid8,
    last_tenants text[] default null, last_tenant text default '', seed bigint default 0
) returns json
language plpgsql
set search_path = batchmill, pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
set plan_cache_mode = force_generic_plan as $$
declare
    d demand := (worker, tasks, wants, want, prefetch, since, last_tenants, last_tenant, seed);
    submitted bigint[];
    at_once json;
    open bigint[];
begin
    -- The same lock as in hold_limits_shared(), without the cost of a call.
    perform pg_advisory_xact_lock_shared(hashtext('batchmill.limits'));
    if current_setting('batchmill.knows_server', true) is distinct from 'yes' then
        perform recognise_server();
    end if;
    submitted := submitted_jobs(since);
    if submitted <> '{}' then
        at_once := start_at_once(submitted, d);
        if at_once is not null then
            return at_once;
        end if;
        perform lock_lanes(lanes_of_submitted(submitted));
        perform put_into_lanes(submitted);
    end if;
    open := open_lanes(d.tasks, wants, want + prefetch, last_tenants);
    return claim_from_lanes(open, lock_above(open), d);
end $$;

-- Prevents a server from issuing fences that its predecessor issued before. A promoted standby may lack the
-- last commits, and a server that crashed with `synchronous_commit` off may have lost some. It would issue
-- their fences again, and an outcome of a lost attempt could be taken for that of a new attempt. So the first
-- claim after a server start skips more fences than can have been lost. A session ends with its server, so
-- only the first claim of a session checks this.
create or replace function recognise_server() returns void
language plpgsql as $$
begin
    if not exists (select from server where started_at = pg_postmaster_start_time()) then
        update server set started_at = pg_postmaster_start_time()
        where started_at <> pg_postmaster_start_time();
        if found then
            perform setval('fences', nextval('fences') + 4294967296);
        end if;
    end if;
    perform set_config('batchmill.knows_server', 'yes', false);
end $$;

-- Jobs that were submitted without a batch. A submit only inserts, so that a caller's long transaction never
-- holds a lane. The next claim puts these jobs into their lanes.
create or replace function submitted_jobs(since xid8) returns bigint[]
language plpgsql as $$
declare
    most constant integer := 1000;
    ids bigint[] := array(
        select id from jobs where lane_id is null and submitted_by >= since
        order by submitted_by limit most for update skip locked);
begin
    return case when cardinality(ids) < most then ids else ids || submitted_by_others(ids) end;
end $$;

-- The first submitted jobs of tenants that have no job among the known ones, so that a tenant with very many
-- jobs does not keep the others out of their lanes.
create or replace function submitted_by_others(known bigint[]) returns bigint[]
language plpgsql as $$
declare
    tenants text[] := array(select distinct tenant from jobs where id = any (known));
    ids bigint[] := '{}';
    next text := '';
begin
    while cardinality(ids) < 1000 loop
        next := (
            select tenant from jobs where lane_id is null and tenant > next order by tenant limit 1);
        exit when next is null;
        continue when next = any (tenants);
        ids := ids || array(
            select id from jobs where lane_id is null and tenant = next
            order by submitted_by limit 20 for update skip locked);
    end loop;
    return ids;
end $$;

create or replace function lanes_of_submitted(job_ids bigint[]) returns bigint[]
language plpgsql as $$
begin
    return array(
        select lane_for(task, tenant, null, key)
        from (select distinct task, tenant, key from jobs where id = any (job_ids)) waiting
        order by task, tenant, key);
end $$;

create or replace function put_into_lanes(job_ids bigint[]) returns void
language plpgsql as $$
begin
    update jobs set lane_id = lane_for(task, tenant, null, key), submitted_by = null
    where id = any (job_ids);
    perform wait_in_lanes(job_ids, clock());
end $$;

-- Starts submitted jobs directly, without waiting in their lane. This is the common case: no other job waits
-- and no limit counts. Returns null in all other cases.
create or replace function start_at_once(job_ids bigint[], d demand, refused bigint[] default '{}') returns json
language plpgsql as $$
declare
    moment timestamptz := clock();
    next_at timestamptz := ready_next(d.tasks, moment);
    lane lanes;
    claimed json;
begin
    if cardinality(job_ids) > d.want or next_at <= moment or exists (select from limits where counts) then
        return null;
    end if;
    update lanes l set running = l.running + cardinality(job_ids)
    from (
        select min(task) as task, min(tenant) as tenant from jobs where id = any (job_ids)
        having min(task) = max(task) and min(tenant) = max(tenant)
           and bool_and(state = 'ready' and key = '')) alike
    where l.batch_id is null and l.task = alike.task and l.tenant = alike.tenant and l.key = ''
      and l.ready_at is null and cardinality(job_ids) <= d.wants[array_position(d.tasks, alike.task)]
    returning l.* into lane;
    if lane.id is null then
        return null;
    end if;
    with started as (
        update jobs
        set state = 'running', attempt = attempt + 1, fence = nextval('fences'), worker_id = d.worker,
            started_at = moment, lane_id = lane.id, submitted_by = null
        where id = any (job_ids)
        returning id, fence, attempt, payload, position, snoozes, checkpoints, run_at, labels, priority
    )
    select json_build_object(
        'lanes', lane_columns(lane => json_build_array(lane.id), task => json_build_array(lane.task),
            tenant => json_build_array(lane.tenant), key => json_build_array(lane.key),
            batch_id => '[null]', batch_labels => '[null]'),
        'jobs', job_columns(id => json_agg(id), fence => json_agg(fence), lane => json_agg(lane.id),
            attempt => json_agg(attempt), payload => json_agg(payload::text),
            "position" => json_agg(position), snoozes => json_agg(snoozes),
            checkpoints => json_agg(checkpoints), waited => json_agg(waited(run_at, moment)),
            own_labels => json_agg(labels)))
    into claimed
    from (select * from started order by priority desc, id) in_turn;
    return answered(claimed, cardinality(job_ids), false, d.worker, d.want, next_at, d.since, refused, moment);
end $$;

-- Claims from lanes. The caller holds the lanes, their limits and their batches.
create or replace function claim_from_lanes(
    lane_ids bigint[], limit_ids bigint[], d demand, refused bigint[] default '{}'
) returns json
language plpgsql as $$
declare
    -- Read the clock only after all locks are held: every earlier holder of a slot has then released it.
    moment timestamptz := clock();
    next_at timestamptz := moment;
    claimed json;
    taken integer := 0;
    passed_over boolean := false;
    last_tenants text[] := d.last_tenants;
    last_tenant text := d.last_tenant;
begin
    if lane_ids <> '{}' then
        select t.claimed, t.taken, t.passed_over, t.last_tenants, t.last_tenant
        into claimed, taken, passed_over, last_tenants, last_tenant
        from take_jobs(lane_ids, limit_ids, d, moment) t;
    end if;
    if taken < d.want + d.prefetch then
        next_at := ready_next(d.tasks, moment);
    end if;
    return answered(claimed, taken, passed_over, d.worker, d.want, next_at, d.since, refused, moment,
        last_tenants, last_tenant);
end $$;

-- The time when there may be work next, or null if it is unknown.
create or replace function ready_next(of_tasks text[], moment timestamptz) returns timestamptz
language plpgsql as $$
begin
    return (
        select min(at) from (
            select l.ready_at as at from unnest(of_tasks) as w (task)
            cross join lateral (
                (select ready_at from lanes where lanes.task = w.task and is_open and is_due limit 1)
                union all
                (select ready_at from lanes
                 where lanes.task = w.task and is_open and not is_due and ready_at is not null
                 order by ready_at limit 1)) l
            union all
            select opens_at from limits where parked and opens_at > moment) soon);
end $$;

-- Builds the answer of a claim, and records whether the worker now waits for more jobs. Raises an error if
-- the worker is not live. Locks the worker's row, so that a claim and marking the worker lost serialise: a
-- lost worker starts no more jobs. `alone` is true if no other worker is live.
--
-- All jobs of transactions older than the snapshot are visible by now, or were rolled back. So once no
-- submitted job is left, the next claim need not look for older ones, and `since` advances.
create or replace function answered(
    claimed json, taken integer, passed_over boolean, worker bigint, want integer,
    next_at timestamptz, since xid8, refused bigint[], moment timestamptz,
    last_tenants text[] default null, last_tenant text default null
) returns json
language plpgsql as $$
declare
    wants_more boolean := taken < want and (next_at > moment) is not false;
    was_idle boolean;
    alone boolean;
begin
    select w.idle, not exists (select from workers o where o.state = 'live' and o.id <> w.id)
    into was_idle, alone
    from workers w where w.id = worker and w.state = 'live' for no key update of w;
    if not found then
        raise exception 'Worker % is not live.', worker using errcode = 'BM010';
    end if;
    if was_idle <> wants_more then
        update workers w set idle = wants_more where w.id = worker;
    end if;
    return json_build_object(
        'claimed', claimed,
        'passed_over', passed_over,
        'alone', alone,
        'wait', extract(epoch from next_at - moment),
        'since', case when exists (select from jobs where lane_id is null and submitted_by >= since)
            then since else pg_snapshot_xmin(pg_current_snapshot()) end,
        'last_tenants', last_tenants,
        'last_tenant', last_tenant,
        'refused', refused);
end $$;
