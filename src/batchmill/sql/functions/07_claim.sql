-- Starts up to `want` jobs for a worker, at most `wants[i]` of `tasks[i]`, and up to `spare` more from
-- lanes that no limit counts. Tenants take turns, in each task from the one after `last_tenants[i]` on;
-- `last_tenant` was served last of all. `lot` is a number that differs from claim to claim, by which the
-- turns of a tenant's tasks are drawn. Returns the jobs and their lanes by columns, the seconds until
-- there may be more, whether no other worker is live, the place from which the next claim needs to look
-- for submitted jobs, and the tenants that were served last.
create function claim(
    worker bigint, tasks text[], wants integer[], want integer, spare integer, since xid8,
    last_tenants text[] default null, last_tenant text default '', lot bigint default 0
) returns json
language plpgsql
set search_path = batchmill, pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
set plan_cache_mode = force_generic_plan as $$
declare
    submitted bigint[];
    at_once json;
    open bigint[];
begin
    perform pg_advisory_xact_lock_shared(hashtext('batchmill.limits'));
    if current_setting('batchmill.knows_server', true) is distinct from 'yes' then
        perform recognise_server();
    end if;
    submitted := submitted_jobs(since);
    if submitted <> '{}' then
        at_once := start_at_once(submitted, worker, claim.tasks, wants, want, since);
        if at_once is not null then
            return at_once;
        end if;
        perform lock_lanes(lanes_of_submitted(submitted));
        perform put_into_lanes(submitted);
    end if;
    open := open_lanes(claim.tasks, wants, want + spare, last_tenants);
    return claim_from(open, lock_above(open), worker, claim.tasks, wants, want, spare, since,
        last_tenants, last_tenant, lot);
end $$;

-- Keeps fences apart from those of a server that this one replaced. A standby that is promoted may not have received
-- the last commits, and a server that crashed with `synchronous_commit` off may have lost some: the fences in them would
-- be issued again, and an outcome of a lost attempt could pass for one of a new attempt. So a server that was started
-- since the last claim skips more fences than can have been lost. A session ends with its server, so its first
-- claim checks this, and the others need not.
create function recognise_server() returns void
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

-- Jobs that were submitted without a batch. Submitting only inserts, so that a caller's long
-- transaction never holds a lane; their lanes learn of them by the next claim.
create function submitted_jobs(since xid8) returns bigint[]
language plpgsql as $$
declare
    most constant integer := 1000;
    ids bigint[] := array(
        select id from jobs where lane_id is null and submitted_by >= since
        order by submitted_by limit most for update skip locked);
begin
    return case when cardinality(ids) < most then ids else ids || submitted_by_others(ids) end;
end $$;

-- The first submitted jobs of tenants that have none among the known ones: a tenant with very many must
-- not keep the others out of their lanes.
create function submitted_by_others(known bigint[]) returns bigint[]
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

create function lanes_of_submitted(job_ids bigint[]) returns bigint[]
language plpgsql as $$
begin
    return array(
        select lane_for(task, tenant, null, key)
        from (select distinct task, tenant, key from jobs where id = any (job_ids)) waiting
        order by task, tenant, key);
end $$;

create function put_into_lanes(job_ids bigint[]) returns void
language plpgsql as $$
begin
    update jobs set lane_id = lane_for(task, tenant, null, key), submitted_by = null
    where id = any (job_ids);
    perform wait_in_lanes(job_ids, clock());
end $$;

-- The common case of jobs that are submitted while nothing waits and no limit counts: they start without
-- waiting in their lane. Null if that is not the case.
create function start_at_once(
    job_ids bigint[], worker bigint, of_tasks text[], wants integer[], want integer, since xid8,
    refused bigint[] default '{}'
) returns json
language plpgsql as $$
declare
    moment timestamptz := clock();
    next_at timestamptz := ready_next(of_tasks, moment);
    lane lanes;
    claimed json;
begin
    if cardinality(job_ids) > want or next_at <= moment or exists (select from limits where counts) then
        return null;
    end if;
    update lanes l set running = l.running + cardinality(job_ids)
    from (
        select min(task) as task, min(tenant) as tenant from jobs where id = any (job_ids)
        having min(task) = max(task) and min(tenant) = max(tenant)
           and bool_and(state = 'ready' and key = '')) alike
    where l.batch_id is null and l.task = alike.task and l.tenant = alike.tenant and l.key = ''
      and l.ready_at is null and cardinality(job_ids) <= wants[array_position(of_tasks, alike.task)]
    returning l.* into lane;
    if lane.id is null then
        return null;
    end if;
    with started as (
        update jobs
        set state = 'running', attempt = attempt + 1, fence = nextval('fences'), worker_id = worker,
            started_at = moment, lane_id = lane.id, submitted_by = null
        where id = any (job_ids)
        returning id, fence, attempt, payload, position, snoozes, checkpoints, run_at, labels, priority
    )
    select json_build_object(
        'lanes', json_build_array(array[lane.id], array[lane.task], array[lane.tenant], array[lane.key],
            array[null], array[null]),
        'jobs', json_build_array(
            json_agg(id), json_agg(fence), json_agg(lane.id), json_agg(attempt), json_agg(payload::text),
            json_agg(position), json_agg(snoozes), json_agg(checkpoints),
            json_agg(greatest(date_part('epoch', moment - run_at), 0)), json_agg(labels)))
    into claimed
    from (select * from started order by priority desc, id) in_turn;
    return answered(claimed, cardinality(job_ids), false, worker, want, next_at, since, refused, moment);
end $$;

-- Locks and returns lanes with work and room. In each task tenants take turns, and of each come the lanes
-- that have waited longest: half as many in all as there is room for jobs, since most have several, and
-- each is kept from other workers meanwhile. `ending` are lanes whose slots are about to be free.
create function open_lanes(
    of_tasks text[], wants integer[], room integer, last_tenants text[], ending bigint[] default '{}'
) returns bigint[]
language plpgsql as $$
declare
    moment timestamptz := clock();
    most integer := least((room + 1) / 2, 200);
begin
    perform unpark_lanes(of_tasks, last_tenants, ending, moment);
    perform wake_lanes(of_tasks, moment);
    return array(
        select l.id from unnest(of_tasks, wants, last_tenants) as w (task, want, last_tenant)
        -- Some more tenants than needed: other workers may hold the lanes of some.
        cross join lateral (select open_tenants(w.task, w.last_tenant, most + 3) as ids offset 0) tenants
        cross join lateral (
            select l.id from unnest(tenants.ids) as t (tenant)
            cross join lateral (
                select id from lanes
                where lanes.task = w.task and lanes.tenant = t.tenant and is_open and is_due
                order by ready_at limit (most - 1) / least(cardinality(tenants.ids), most) + 1
                for update skip locked) l
            limit least(w.want, most)) l);
end $$;

-- The tenants with work in open lanes of a task whose turn is next. Most often there is one.
create function open_tenants(of_task text, last_tenant text, most integer) returns text[]
language plpgsql as $$
declare
    first text := (
        select tenant from lanes where task = of_task and is_open and is_due order by tenant limit 1);
begin
    if first is null then
        return '{}';
    elsif first = (
        select tenant from lanes where task = of_task and is_open and is_due order by tenant desc limit 1)
    then
        return array[first];
    end if;
    return next_tenants(of_task, null, coalesce(last_tenant, ''), most);
end $$;

-- Marks lanes whose time has come.
create function wake_lanes(of_tasks text[], moment timestamptz) returns void
language plpgsql as $$
begin
    if (select min(l.ready_at) from unnest(of_tasks) as t (task)
        cross join lateral (
            select ready_at from lanes
            where lanes.task = t.task and is_open and not is_due and ready_at is not null
            order by ready_at limit 1) l) <= moment
    then
        update lanes set is_due = true where id = any (array(
            select l.id from unnest(of_tasks) as t (task)
            cross join lateral (
                select id from lanes
                where lanes.task = t.task and is_open and not is_due and ready_at <= moment
                order by ready_at limit 500 for update skip locked) l));
    end if;
end $$;

-- The tenants with work in open lanes of a task, or in those parked behind a limit: in the order of their
-- names, from the one after `last_tenant` on and round again, at most so many. Each is one look at an
-- index, however many lanes it has.
create function next_tenants(of_task text, behind bigint, last_tenant text, most integer) returns text[]
language plpgsql as $$
declare
    tenants text[] := '{}';
    place text := last_tenant;
    is_round boolean := last_tenant = '';
    next text;
begin
    while cardinality(tenants) < most loop
        if behind is null then
            next := (
                select tenant from lanes
                where task = of_task and is_open and is_due and tenant > place
                order by tenant limit 1);
        else
            next := (
                select tenant from lanes
                where blocked_by = behind and task = of_task and tenant > place
                order by tenant limit 1);
        end if;
        if next is null and not is_round then
            place := '';
            is_round := true;
            continue;
        end if;
        exit when next is null or (is_round and last_tenant <> '' and next > last_tenant);
        tenants := tenants || next;
        place := next;
    end loop;
    return tenants;
end $$;

-- Lets lanes come forward whose limit has room, or will have once the jobs of `ending` lanes have ended.
-- Too many only means that some park once more.
create function unpark_lanes(of_tasks text[], last_tenants text[], ending bigint[], moment timestamptz)
returns void
language plpgsql as $$
declare
    opening record;
    limit_ids bigint[] := '{}';
    tasks text[] := '{}';
    tenants text[] := '{}';
    counts integer[] := '{}';
    next text[];
begin
    if not exists (select from limits where parked) then
        return;
    end if;
    for opening in select * from parked_lanes(of_tasks, ending, moment) loop
        next := case when opening.is_shared
            then next_tenants(opening.task, opening.limit_id,
                coalesce(last_tenants[array_position(of_tasks, opening.task)], ''), opening.room)
            else array[opening.tenant] end;
        -- Another worker may have unparked the lanes meanwhile.
        continue when next = '{}';
        limit_ids := limit_ids || array_fill(opening.limit_id, array[cardinality(next)]);
        tasks := tasks || array_fill(opening.task, array[cardinality(next)]);
        tenants := tenants || next;
        counts := counts || array_fill(
            ceil(opening.room::numeric / cardinality(next))::integer, array[cardinality(next)]);
    end loop;
    if limit_ids <> '{}' then
        update lanes set blocked_by = null where id = any (array(
            select l.id from unnest(limit_ids, tasks, tenants, counts) as p (limit_id, task, tenant, n)
            cross join lateral (
                select id from lanes
                where blocked_by = p.limit_id and lanes.task = p.task and lanes.tenant = p.tenant
                order by ready_at limit p.n
                for update skip locked) l));
    end if;
end $$;

-- The limits that have room for lanes parked behind them, by task, with the first tenant of these lanes.
create function parked_lanes(of_tasks text[], ending bigint[], moment timestamptz)
returns table (limit_id bigint, task text, room integer, tenant text, is_shared boolean)
language sql stable
begin atomic
    with ends as materialized (
        select n.name, count(*)::integer as lanes from lanes l
        cross join lateral limit_names(l.task, l.tenant, l.batch_id, l.key) n
        where l.id = any (ending) and l.is_busy
        group by n.name
    ), opening as materialized (
        select m.id, least(free_slots(m, moment, coalesce(
            (select ends.lanes from ends where ends.name = m.name), 0)), 500) as room
        from limits m where m.parked
    )
    select o.id, t.task, o.room, f.tenant, f.tenant <> (
        select l.tenant from lanes l where l.blocked_by = o.id and l.task = t.task
        order by l.tenant desc limit 1)
    from opening o cross join unnest(of_tasks) as t (task)
    cross join lateral (
        select l.tenant from lanes l where l.blocked_by = o.id and l.task = t.task
        order by l.tenant limit 1) f
    where o.room > 0;
end;

-- Claims from lanes that are held together with all above them.
create function claim_from(
    lane_ids bigint[], limit_ids bigint[], worker bigint, tasks text[], wants integer[], want integer,
    spare integer, since xid8, last_tenants text[], last_tenant text, lot bigint,
    refused bigint[] default '{}'
) returns json
language plpgsql as $$
declare
    -- Only now is it sure what comes before this: whoever had a slot has given it back.
    moment timestamptz := clock();
    next_at timestamptz := moment;
    claimed json;
    taken integer := 0;
    passed_over boolean := false;
begin
    if lane_ids <> '{}' then
        select t.claimed, t.taken, t.passed_over, t.served_last, t.served
        into claimed, taken, passed_over, last_tenants, last_tenant
        from take_from(lane_ids, limit_ids, worker, claim_from.tasks, wants, want, spare, last_tenants,
            last_tenant, lot, moment) t;
    end if;
    if taken < want + spare then
        next_at := ready_next(claim_from.tasks, moment);
    end if;
    return answered(claimed, taken, passed_over, worker, want, next_at, since, refused, moment,
        last_tenants, last_tenant);
end $$;

-- What a claim returns. Notes whether its worker now waits for more jobs; it is an error if the worker is not
-- live. Locks the worker's row, so that a claim and marking the worker lost serialise: a worker that is marked
-- lost has started all that it ever will. `alone` is true if no other worker is live.
--
-- All jobs of transactions that are older than the snapshot's are visible by now, or never will be. So once no
-- submitted job is left, the next claim need not look for older ones: `since` moves on.
create function answered(
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

-- When there may be work next, if that is known.
create function ready_next(of_tasks text[], moment timestamptz) returns timestamptz
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

-- Decides lane by lane how many jobs start, and starts them. `passed_over` tells that a limited lane was
-- left out because all slots of the worker are taken, `served` which tenant had its turn last, and
-- `served_last` the same for each task.
create function take_from(
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
        -- Where nobody is served, the turn goes on from the last tenant whose lane had to park: else the
        -- next claim would meet only the next lane of a tenant at its limit.
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

-- Locked lanes in their turn: the first of each tenant, then the second of each. Between its tasks a
-- tenant's turn is drawn by lot, and between lanes of one task it is that of the lane that was served
-- longest ago. Tenants follow the one that their task served last; between tasks, the one that was served
-- last of all. `counts` is how many jobs each lane may start; `share` is what a tenant may have of the room.
create function in_turn(
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
    -- Most claims find lanes of one tenant and task, for which the order of service is all there is.
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

-- A lane costs as much as some jobs, so even where there are many, each gets a few of them; and more
-- where jobs are so short that they are taken ahead.
create function jobs_of_a_lane(share integer, lanes integer, spare integer) returns integer
language sql immutable
return greatest((share + lanes - 1) / lanes, spare / 8, 4);

-- The jobs of locked lanes that could start now, at most so many of each lane, and those in order.
create function startable_jobs(turns bigint[], counts integer[], moment timestamptz)
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

-- Makes chosen jobs running, a new attempt and a new fence each, and tells it in their batches.
-- Returns them in the order of the lanes in `touched`, and what each lane's jobs have in common.
create function start_jobs(worker bigint, chosen bigint[], touched bigint[], moment timestamptz)
returns json
language plpgsql as $$
declare
    watched uuid[];
    claimed json;
begin
    with started as (
        update jobs
        set state = 'running', attempt = attempt + 1, fence = nextval('fences'),
            worker_id = worker, started_at = moment
        where id = any (chosen)
        returning id, lane_id, priority, batch_id, position, task, tenant, key, attempt, snoozes, fence,
            payload, checkpoints, labels, run_at
    ), counted as (
        update batches b
        set running = b.running + s.n,
            last_event = b.last_event + s.n + o.begins::integer,
            state = case b.state when 'pending' then 'processing' else b.state end,
            started_at = coalesce(b.started_at, moment)
        from (
            select batch_id, sum(n)::integer as n, array_agg(telling) as tellings
            from (
                select batch_id, count(*) as n, row ('job_started',
                    sum(count(*)) over (partition by batch_id order by task, attempt),
                    array_agg(id), array_agg(position), array[attempt_data(task, attempt)]
                )::telling as telling
                from started where batch_id is not null group by batch_id, task, attempt) t
            group by batch_id) s
        cross join lateral (
            select started_at is null as begins from batches where id = s.batch_id offset 0) o
        where b.id = any (array[s.batch_id])
        returning b.*, b.last_event - s.n as before, o.begins, s.tellings
    ), told as (
        insert into event_blocks (batch_id, last_number, tenant, type, job_ids, positions, data, at,
            expires_on)
        select id, before, tenant, 'batch_started', '{null}', '{null}',
            array[json_build_object('task', task, 'total', total)], moment, expires_on
        from counted c where begins
        union all
        select c.id, c.before + t.upto, c.tenant, t.type, t.job_ids, t.positions, t.data, moment,
            c.expires_on
        from counted c cross join lateral unnest(c.tellings) t
    )
    -- By columns: for each value of a row, json_build_array would look its type up again.
    select json_build_object(
            'lanes', (
                select json_build_array(json_agg(id), json_agg(task), json_agg(tenant), json_agg(key),
                    json_agg(batch_id), json_agg((select labels from batches where id = batch_id)))
                from lanes where id = any (touched)),
            'jobs', json_build_array(
                json_agg(id), json_agg(fence), json_agg(lane_id), json_agg(attempt),
                json_agg(payload::text), json_agg(position), json_agg(snoozes), json_agg(checkpoints),
                json_agg(greatest(date_part('epoch', moment - run_at), 0)), json_agg(labels))),
        (select array_agg(id) from counted where watched_until > moment)
    into claimed, watched
    from (
        select * from started order by array_position(touched, lane_id), priority desc, id) in_turn;
    perform notify_watchers(watched);
    return claimed;
end $$;

-- Counts starts on limits, remembers them where there is a rate, and notes who has parked there.
-- Starts are remembered by hundredths of the period, each as late as it may have been: a window of
-- any place holds at most the rate, and the memory stays small.
create function count_starts(
    limit_ids bigint[], counted integer[], behind bigint[], moment timestamptz
) returns void language plpgsql as $$
begin
    update limits m
    set running = m.running + c.n,
        started_at = recent.at,
        started = recent.n,
        -- Not `exists`, which may be answered by hashing all the lanes there are.
        parked = (select true from lanes l where l.blocked_by = m.id limit 1) is not null,
        opens_at = recent.first + make_interval(secs => m.period)
    from unnest(limit_ids, counted) as c (id, n)
    cross join lateral (select * from limits where limits.id = c.id offset 0) o
    cross join lateral (
        select coalesce(array_agg(at order by at), '{}') as at,
            coalesce(array_agg(n order by at), '{}') as n, min(at) as first
        from (
            select at, sum(u.n)::integer as n from (
                select * from unnest(o.started_at, o.started) as before (at, n)
                union all
                select to_timestamp(ceil(extract(epoch from moment) * 100 / o.period) * o.period / 100), c.n
                where o.rate is not null and c.n > 0) u
            where at > moment - make_interval(secs => o.period)
            group by at) u
    ) recent
    where m.id = any (array[c.id]) and (c.n > 0 or o.parked or m.id = any (behind));
end $$;
