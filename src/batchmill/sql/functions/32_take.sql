-- Chooses the jobs of the locked lanes that start: as many as slots, limits and the shares of tenants allow.

-- Decides lane by lane how many jobs start, and starts them. `passed_over` is true if a limited lane was
-- skipped because all slots of the worker are taken. `served` is the tenant that had the last turn, and
-- `served_last` the same for each task.
create or replace function take_from(
    lane_ids bigint[], limit_ids bigint[], worker bigint, tasks text[], wants integer[], want integer,
    spare integer, last_tenants text[], last_tenant text, lot bigint, moment timestamptz,
    out claimed json, out taken integer, out passed_over boolean, out served_last text[], out served text
)
language plpgsql as $$
declare
    names text[] := '{}';
    free integer[] := '{}';
    counted integer[] := '{}';
    lane record;
    place integer;
    full_at integer;
    tenant_at integer;
    take integer;
    room integer := want + spare;
    asked integer[] := wants;
    chosen bigint[] := '{}';
    touched bigint[] := '{}';
    took integer[] := '{}';
    last_rank integer[] := '{}';
    last_id bigint[] := '{}';
    emptied boolean[] := '{}';
    behind bigint[] := '{}';
    turns bigint[];
    counts integer[];
    share integer;
    tenants text[] := '{}';
    shares integer[] := '{}';
begin
    passed_over := false;
    served := last_tenant;
    served_last := coalesce(last_tenants, array_fill(''::text, array[cardinality(take_from.tasks)]));
    select * into turns, counts, share
    from in_turn(lane_ids, room, spare, take_from.tasks, served_last, last_tenant, lot);
    if limit_ids <> '{}' then
        select array_agg(m.id), array_agg(m.name), array_agg(free_slots(m, moment)), array_agg(0)
        into limit_ids, names, free, counted
        from limits m where m.id = any (limit_ids);
    end if;

    for lane in
        select s.*, array_position(take_from.tasks, s.task) as task_at, array(
            select array_position(names, n.name)
            from limit_names(s.task, s.tenant, s.batch_id, s.key) n
            where names <> '{}' and n.name = any (names)) as counts_on
        from startable_jobs(turns, counts, moment) s
    loop
        take := 0;
        full_at := null;
        tenant_at := array_position(tenants, lane.tenant);
        if tenant_at is null then
            tenants := tenants || lane.tenant;
            shares := shares || share;
            tenant_at := cardinality(tenants);
        end if;
        continue when shares[tenant_at] = 0;
        if lane.job_ids is not null then
            take := least(cardinality(lane.job_ids), wants[lane.task_at], room, shares[tenant_at]);
            if lane.slots is not null or lane.counts_on <> '{}' then
                take := least(take, room - spare);
            end if;
            foreach place in array lane.counts_on loop
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
            foreach place in array lane.counts_on loop
                free[place] := free[place] - take;
                counted[place] := counted[place] + take;
            end loop;
            chosen := chosen || lane.job_ids[1:take];
            room := room - take;
            wants[lane.task_at] := wants[lane.task_at] - take;
            shares[tenant_at] := shares[tenant_at] - take;
        end if;
        -- If no tenant is served, the next turn starts after the last tenant whose lane was parked. Otherwise
        -- the next claim would only reach the next lane of a tenant that is at its limit.
        if take > 0 or chosen = '{}' then
            served := lane.tenant;
        end if;
        if take > 0 or wants[lane.task_at] = asked[lane.task_at] then
            served_last[lane.task_at] := lane.tenant;
        end if;
        touched := touched || lane.lane_id;
        took := took || take;
        last_rank := last_rank || lane.ranks[take];
        last_id := last_id || lane.job_ids[take];
        emptied := emptied || (not lane.more and take = coalesce(cardinality(lane.job_ids), 0));
        behind := behind || limit_ids[full_at];
        exit when room = 0;
    end loop;

    update lanes l
    set running = l.running + t.took,
        ready_at = case
            when t.emptied then (
                select min(run_at) from jobs j
                where j.lane_id = l.id and j.is_scheduled and j.id <> all (chosen))
            when t.took > 0 then moment
            else l.ready_at end,
        is_due = l.is_due and not t.emptied,
        blocked_by = t.behind,
        head_rank = coalesce(t.rank, l.head_rank),
        head_id = coalesce(t.last_id, l.head_id)
    from unnest(touched, took, last_rank, last_id, emptied, behind)
        as t (id, took, rank, last_id, emptied, behind)
    where l.id = any (array[t.id]);
    if limit_ids <> '{}' then
        perform count_starts(limit_ids, counted, behind, moment);
    end if;
    taken := cardinality(chosen);
    if taken > 0 then
        claimed := start_jobs(worker, chosen, touched, moment);
    end if;
end $$;

-- Orders locked lanes by turn: the first lane of each tenant, then the second of each. `lot` decides the
-- order of a tenant's tasks; within a task, the lane that was served longest ago comes first. Within a task,
-- tenants start after the one that the task served last; between tasks, after the one that was served last in
-- any task. `counts` is how many jobs each lane may start; `share` is a tenant's share of the room.
create or replace function in_turn(
    lane_ids bigint[], room integer, spare integer, tasks text[], last_tenants text[], last_tenant text,
    lot bigint, out turns bigint[], out counts integer[], out share integer
)
language plpgsql as $$
declare
    alike boolean;
begin
    share := room;
    if cardinality(lane_ids) = 1 then
        turns := lane_ids;
        counts := array[room];
        return;
    end if;
    -- Most claims get lanes of one tenant and one task, where the time of the last service alone decides the
    -- order.
    select array_agg(id order by ready_at, id), min(tenant) = max(tenant) and min(task) = max(task)
    into turns, alike from lanes where id = any (lane_ids);
    if alike then
        counts := array_fill(
            jobs_of_a_lane(share, cardinality(turns), spare), array[cardinality(turns)]);
        return;
    end if;
    share := (
        select ceil(room::numeric / count(distinct tenant)) from lanes where id = any (lane_ids));
    select array_agg(id order by in_tenant, turn, tenant <= last_tenant, tenant),
        array_agg(jobs_of_a_lane(share, of_tenant, spare)
            order by in_tenant, turn, tenant <= last_tenant, tenant)
    into turns, counts
    from (
        select *, row_number() over (
            partition by task, in_tenant
            order by tenant <= last_tenants[array_position(in_turn.tasks, task)], tenant) as turn
        from (
            select id, tenant, task, count(*) over (partition by tenant)::integer as of_tenant,
                row_number() over (partition by tenant order by in_task, hashtextextended(task, lot), id)
                    as in_tenant
            from (
                select id, tenant, task,
                    row_number() over (partition by tenant, task order by ready_at, id) as in_task
                from lanes where id = any (lane_ids)) by_task) by_tenant) by_turn;
end $$;

-- A lane costs as much as several jobs, so each lane gets at least a few, even if there are many lanes. It
-- gets more if jobs are so short that the worker prefetches them.
create or replace function jobs_of_a_lane(share integer, lanes integer, spare integer) returns integer
language sql immutable
return greatest((share + lanes - 1) / lanes, spare / 8, 4);

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
