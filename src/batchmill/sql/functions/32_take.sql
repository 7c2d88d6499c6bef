-- Chooses the jobs of the locked lanes that start: as many as slots, limits and the shares of tenants allow.

-- What a claim picks from one lane: how many jobs, the last of them, whether no job is left that can start, and
-- the limit that is full, if any.
do $$ begin
    create type lane_pick as (
        lane_id bigint, jobs integer, last_rank integer, last_id bigint, is_emptied boolean, blocked_by bigint);
exception when duplicate_object then null;
end $$;

-- Chooses jobs and starts them. `passed_over` is true if a limited lane was skipped because all slots of the
-- worker are taken. The next claim continues after `last_tenant`, and in each task after `last_tenants[i]`.
create or replace function take_jobs(
    lane_ids bigint[], limit_ids bigint[], d demand, moment timestamptz,
    out claimed json, out taken integer, out passed_over boolean, out last_tenants text[], out last_tenant text
)
language plpgsql as $$
declare
    names text[] := '{}';
    free integer[] := '{}';
    starts_by_limit integer[];
    chosen bigint[];
    picks lane_pick[];
begin
    if limit_ids <> '{}' then
        -- The limit of a batch may be gone: the same call may have finished the batch.
        select coalesce(array_agg(m.id), '{}'), coalesce(array_agg(m.name), '{}'),
            coalesce(array_agg(free_slots(m, moment)), '{}')
        into limit_ids, names, free
        from limits m where m.id = any (limit_ids);
    end if;
    select c.job_ids, c.picks, c.starts_by_limit, c.passed_over, c.last_tenants, c.last_tenant
    into chosen, picks, starts_by_limit, passed_over, last_tenants, last_tenant
    from choose_jobs(lane_ids, limit_ids, names, free, d, moment) c;
    perform advance_lanes(picks, chosen, moment);
    if limit_ids <> '{}' then
        perform count_starts(
            limit_ids, starts_by_limit, array(select blocked_by from unnest(picks)), moment);
    end if;
    taken := cardinality(chosen);
    if taken > 0 then
        claimed := start_jobs(
            d.worker, chosen, array(select lane_id from unnest(picks)), moment);
    end if;
end $$;

-- Decides lane by lane how many jobs start. `names` and `free` are the names of the limits and their free
-- slots; `starts_by_limit` is how many of the chosen jobs each limit counts.
create or replace function choose_jobs(
    lane_ids bigint[], limit_ids bigint[], names text[], free integer[], d demand, moment timestamptz,
    out job_ids bigint[], out picks lane_pick[], out starts_by_limit integer[], out passed_over boolean,
    out last_tenants text[], out last_tenant text
)
language plpgsql as $$
declare
    ordered_lanes bigint[];
    most_per_lane integer[];
    ranks integer[];
    tenants_by_rank integer[];
    rank integer;
    share integer;
    room integer := d.want + d.prefetch;
    wants integer[] := d.wants;
    tenants text[];
    shares integer[];
    lane record;
    tenant_at integer;
    place integer;
    full_at integer;
    take integer;
    -- If tasks have priorities: whether a lane of this rank has more jobs than its share. The next claim starts them
    -- before any lower task.
    has_more boolean := false;
begin
    job_ids := '{}';
    picks := '{}';
    starts_by_limit := array_fill(0, array[cardinality(limit_ids)]);
    passed_over := false;
    last_tenant := d.last_tenant;
    last_tenants := coalesce(d.last_tenants, array_fill(''::text, array[cardinality(d.tasks)]));
    select * into ordered_lanes, most_per_lane, ranks, tenants_by_rank
    from lanes_in_turn(lane_ids, d, last_tenants);

    for lane in
        select s.*, array_position(d.tasks, s.task) as task_at, array(
            select array_position(names, n.name)
            from limit_names(s.task, s.tenant, s.batch_id, s.key) n
            where names <> '{}' and n.name = any (names)) as limit_places
        from startable_jobs(ordered_lanes, most_per_lane, moment) s
    loop
        take := 0;
        full_at := null;
        if ranks[lane.task_at] is distinct from rank or share is null then
            exit when has_more;
            rank := ranks[lane.task_at];
            share := ceil(room::float8 / tenants_by_rank[coalesce(rank, 1)]);
            tenants := '{}';
            shares := '{}';
        end if;
        tenant_at := array_position(tenants, lane.tenant);
        if tenant_at is null then
            tenants := tenants || lane.tenant;
            shares := shares || share;
            tenant_at := cardinality(tenants);
        end if;
        if shares[tenant_at] = 0 then
            has_more := has_more or rank is not null and lane.job_ids is not null;
            continue;
        end if;
        if lane.job_ids is not null then
            take := least(cardinality(lane.job_ids), wants[lane.task_at], room, shares[tenant_at]);
            if lane.slots is not null or lane.limit_places <> '{}' then
                take := least(take, room - d.prefetch);
            end if;
            foreach place in array lane.limit_places loop
                take := least(take, free[place]);
                if free[place] <= 0 then
                    full_at := place;
                end if;
            end loop;
            if take <= 0 and full_at is null then
                passed_over := passed_over or wants[lane.task_at] > 0;
                continue;
            end if;
            take := greatest(take, 0);
            if rank is not null and full_at is null and not has_more then
                has_more := take = least(
                    shares[tenant_at], most_per_lane[array_position(ordered_lanes, lane.lane_id)]);
            end if;
            foreach place in array lane.limit_places loop
                free[place] := free[place] - take;
                starts_by_limit[place] := starts_by_limit[place] + take;
            end loop;
            job_ids := job_ids || lane.job_ids[1:take];
            room := room - take;
            wants[lane.task_at] := wants[lane.task_at] - take;
            shares[tenant_at] := shares[tenant_at] - take;
        end if;
        -- If no tenant is served, the next turn starts after the last tenant whose lane was parked. Otherwise
        -- the next claim would only reach the next lane of a tenant that is at its limit.
        if take > 0 or job_ids = '{}' then
            last_tenant := lane.tenant;
        end if;
        if take > 0 or wants[lane.task_at] = d.wants[lane.task_at] then
            last_tenants[lane.task_at] := lane.tenant;
        end if;
        picks := picks || row (
            lane.lane_id, take, lane.ranks[take], lane.job_ids[take],
            not lane.more and take = coalesce(cardinality(lane.job_ids), 0), limit_ids[full_at])::lane_pick;
        exit when room = 0;
    end loop;
end $$;

-- Moves lanes past the chosen jobs, and parks those whose limit is full.
create or replace function advance_lanes(picks lane_pick[], chosen bigint[], moment timestamptz) returns void
language plpgsql as $$
begin
    update lanes l
    set running = l.running + t.jobs,
        ready_at = case
            when t.is_emptied then (
                select min(run_at) from jobs j
                where j.lane_id = l.id and j.is_scheduled and j.id <> all (chosen))
            when t.jobs > 0 then moment
            else l.ready_at end,
        is_due = l.is_due and not t.is_emptied,
        blocked_by = t.blocked_by,
        head_rank = coalesce(t.last_rank, l.head_rank),
        head_id = coalesce(t.last_id, l.head_id)
    from unnest(picks) t
    where l.id = any (array[t.lane_id]);
end $$;

-- Orders locked lanes by turn: lanes of the task with the highest priority come first; then the first lane of each
-- tenant, then the second of each. The seed decides the order of a tenant's tasks; within a task, the lane
-- that was served longest ago comes first. Within a task, tenants start after the one that the task served last;
-- between tasks, after the one that was served last in any task. `most_per_lane` is how many jobs each lane may
-- start. `ranks` has the place of each task in the order of priorities, from 1, or is null if all are equal.
-- `tenants_by_rank` is how many tenants share the room at each rank.
create or replace function lanes_in_turn(
    lane_ids bigint[], d demand, last_tenants text[], out ordered_lanes bigint[],
    out most_per_lane integer[], out ranks integer[], out tenants_by_rank integer[]
)
language plpgsql as $$
declare
    room integer := d.want + d.prefetch;
    alike boolean;
begin
    tenants_by_rank := '{1}';
    if cardinality(lane_ids) = 1 then
        ordered_lanes := lane_ids;
        most_per_lane := array[room];
        return;
    end if;
    -- Most claims get lanes of one tenant and one task, where the time of the last service alone decides the
    -- order.
    select array_agg(id order by ready_at, id), min(tenant) = max(tenant) and min(task) = max(task)
    into ordered_lanes, alike from lanes where id = any (lane_ids);
    if alike then
        most_per_lane := array_fill(
            jobs_per_lane(room, cardinality(ordered_lanes), d.prefetch), array[cardinality(ordered_lanes)]);
        return;
    end if;
    ranks := task_ranks(d);
    tenants_by_rank := (
        select array_agg(coalesce(n, 1) order by r.rank)
        from generate_series(1, coalesce((select max(rank) from unnest(ranks) as rank), 1)) as r (rank)
        left join (
            select coalesce(ranks[array_position(d.tasks, task)], 1) as rank,
                count(distinct tenant)::integer as n
            from lanes where id = any (lane_ids) group by 1) used using (rank));
    select array_agg(id order by rank, in_tenant, turn, tenant <= d.last_tenant, tenant),
        array_agg(jobs_per_lane(ceil(room::float8 / tenants_by_rank[rank])::integer, of_tenant, d.prefetch)
            order by rank, in_tenant, turn, tenant <= d.last_tenant, tenant)
    into ordered_lanes, most_per_lane
    from (
        select *, row_number() over (
            partition by task, in_tenant
            order by tenant <= last_tenants[array_position(d.tasks, task)], tenant) as turn
        from (
            select id, tenant, task, rank, count(*) over (partition by rank, tenant)::integer as of_tenant,
                row_number() over (
                    partition by rank, tenant order by in_task, hashtextextended(task, d.seed), id) as in_tenant
            from (
                select id, tenant, task, coalesce(ranks[array_position(d.tasks, task)], 1) as rank,
                    row_number() over (partition by tenant, task order by ready_at, id) as in_task
                from lanes where id = any (lane_ids)) by_task) by_tenant) by_turn;
end $$;

-- The place of each demanded task in the order of priorities; null if all have the same priority. Every
-- eighth claim of a worker ignores priorities, so that a task with a low priority does not starve.
create or replace function task_ranks(d demand) returns integer[]
language plpgsql stable as $$
begin
    if d.seed % 8 = 7 or not have_priorities() then
        return null;
    end if;
    return array(
        select dense_rank() over (order by coalesce(t.priority, 0) desc)::integer
        from unnest(d.tasks) with ordinality as w (task, place)
        left join tasks t on t.name = w.task order by w.place);
end $$;

-- A lane costs as much as several jobs, so each lane gets at least a few, even if there are many lanes. It
-- gets more if jobs are so short that the worker prefetches them.
create or replace function jobs_per_lane(share integer, lanes integer, prefetch integer) returns integer
language sql immutable
return greatest((share + lanes - 1) / lanes, prefetch / 8, 4);

-- The jobs of locked lanes that can start now, in order, at most `counts[i]` of each lane.
create or replace function startable_jobs(turns bigint[], counts integer[], moment timestamptz)
returns table (
    lane_id bigint, task text, tenant text, batch_id uuid, key text, slots integer,
    job_ids bigint[], ranks integer[], more boolean)
language sql stable
begin atomic
    select l.id, l.task, l.tenant, l.batch_id, l.key, l.slots, j.ids, j.ranks, j.n >= cut.at_most
    from unnest(turns, counts) as t (id, n)
    cross join lateral (select * from lanes where lanes.id = t.id offset 0) l
    cross join lateral (select least(t.n, coalesce(l.slots - l.running, t.n)) as at_most) cut
    cross join lateral (
        select array_agg(id) as ids, array_agg(rank) as ranks, count(*) as n
        from (
            select id, rank from (
                (select id, -priority as rank from jobs
                 where lane_id = l.id and not is_scheduled and state = 'ready'
                   and (-priority, id + 0) > (l.head_rank, l.head_id)
                 order by -priority, id + 0 limit cut.at_most)
                union all
                (select id, -priority from jobs
                 where lane_id = l.id and is_scheduled and run_at <= moment
                 order by run_at, -priority, id + 0 limit cut.at_most)
            ) due order by rank, id limit cut.at_most) first
    ) j;
end;
