-- Puts jobs that were submitted without a batch into their lanes. Submitting only inserts, so that a
-- caller's long transaction never holds a lane; the lane learns of its jobs here. True if none of
-- those that can be seen is left.
create function absorb_submitted(since xid8, at_most integer, moment timestamptz) returns boolean
language plpgsql as $$
declare
    job_ids bigint[];
begin
    select array_agg(id) into job_ids from (
        select id from jobs where lane_id is null and submitted_by >= since
        order by submitted_by limit at_most for update skip locked) submitted;
    if job_ids is null then
        return not exists (select from jobs where lane_id is null and submitted_by >= since);
    end if;
    perform lock_lanes(array_agg(lane_for(task, tenant, null, key) order by task, tenant, key))
    from (select distinct task, tenant, key from jobs where id = any (job_ids)) waiting;
    update jobs set lane_id = lane_for(task, tenant, null, key), submitted_by = null
    where id = any (job_ids);
    perform wait_in_lanes(job_ids, moment);
    return not exists (select from jobs where lane_id is null and submitted_by >= since);
end $$;

-- Lets lanes come forward whose limit has room again. Too many only means that some park once more.
create function unpark_lanes(of_tasks text[], moment timestamptz) returns void
language plpgsql as $$
begin
    if exists (select from limits where parked) then
        update lanes set blocked_by = null where id in (
            select l.id from limits m cross join unnest(of_tasks) as t (task)
            cross join lateral (
                select id from lanes where blocked_by = m.id and lanes.task = t.task
                order by ready_at limit least(free_slots(m, moment), 500)
                for update skip locked) l
            where m.parked and free_slots(m, moment) > 0);
    end if;
end $$;

-- The jobs of locked lanes that could start now, those of each in their order.
create function startable_jobs(lane_ids bigint[], share integer, moment timestamptz)
returns table (
    lane_id bigint, task text, tenant text, batch_id uuid, key text, slots integer, ready_at timestamptz,
    job_ids bigint[], ranks integer[], more boolean)
language sql stable as $$
    select l.id, l.task, l.tenant, l.batch_id, l.key, l.slots, l.ready_at, j.ids, j.ranks,
        j.n >= cut.at_most
    from lanes l
    cross join lateral (select least(share, coalesce(l.slots - l.running, share)) as at_most) cut
    cross join lateral (
        select array_agg(id order by rank, id) as ids, array_agg(rank order by rank, id) as ranks,
            count(*) as n
        from (
            select id, rank from (
                (select id, -priority as rank from jobs
                 where lane_id = l.id and state = 'ready'
                   and (-priority, id + 0) > (l.head_rank, l.head_id)
                 order by -priority, id + 0 limit cut.at_most)
                union all
                (select id, -priority from jobs
                 where lane_id = l.id and state = 'scheduled' and run_at <= moment
                 order by run_at, -priority, id + 0 limit cut.at_most)
            ) due order by rank, id limit cut.at_most) first
    ) j
    where l.id = any (lane_ids)
$$;

-- Starts up to `want` jobs for a worker, at most `wants[i]` of `tasks[i]`, and up to `spare` more from
-- lanes that no limit counts. Returns the jobs, the seconds until there may be more, and the place
-- from which the next claim needs to look for submitted jobs.
create function claim(
    worker bigint, tasks text[], wants integer[], want integer, spare integer, since xid8
) returns json
language plpgsql
set search_path = batchmill, pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
    moment timestamptz := clock();
    -- Whatever was submitted by older transactions can be seen by now, or never will.
    horizon xid8 := pg_snapshot_xmin(pg_current_snapshot());
    lane_ids bigint[];
    limit_ids bigint[] := '{}';
    names text[] := '{}';
    free integer[] := '{}';
    counted integer[] := '{}';
    lane record;
    place integer;
    full_at integer;
    take integer;
    room integer := want + spare;
    chosen bigint[] := '{}';
    touched bigint[] := '{}';
    of_batches uuid[] := '{}';
    took integer[] := '{}';
    last_rank integer[] := '{}';
    last_id bigint[] := '{}';
    emptied boolean[] := '{}';
    behind bigint[] := '{}';
    claimed json := '[]';
    next_at timestamptz;
begin
    if not exists (select from workers where id = worker and state = 'live') then
        raise exception 'Worker % is not live.', worker using errcode = 'BM010';
    end if;
    perform hold_limits_shared();
    if absorb_submitted(since, 1000, moment) then
        since := horizon;
    end if;
    perform unpark_lanes(claim.tasks, moment);

    select array_agg(l.id) into lane_ids
    from unnest(claim.tasks, wants) as w (task, want)
    cross join lateral (
        select id from lanes
        where lanes.task = w.task and ready_at <= moment
          and blocked_by is null and (slots is null or running < slots)
        order by ready_at limit least(w.want, room, 100)
        for update skip locked) l;

    if lane_ids is not null then
        perform lock_above(lane_ids);
        -- Only now is it sure what comes before this: whoever had a slot has given it back.
        moment := clock();
        -- Asked now, because a batch that has just been submitted may have brought a limit along.
        if have_limits(lane_ids) then
            select coalesce(array_agg(m.id), '{}'), coalesce(array_agg(m.name), '{}'),
                   coalesce(array_agg(free_slots(m, moment)), '{}'), coalesce(array_agg(0), '{}')
            into limit_ids, names, free, counted
            from limits m where m.name = any (limits_over(lane_ids));
        end if;

        for lane in
            select s.*, array_position(claim.tasks, s.task) as task_at, array(
                select array_position(names, n.name)
                from limit_names(s.task, s.tenant, s.batch_id, s.key) n
                where names <> '{}' and n.name = any (names)) as counts_on
            from startable_jobs(lane_ids, ceil(room::numeric / cardinality(lane_ids))::integer, moment) s
            order by s.ready_at, s.lane_id
        loop
            take := 0;
            full_at := null;
            if lane.job_ids is not null then
                take := least(cardinality(lane.job_ids), wants[lane.task_at], room);
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
            end if;
            touched := touched || lane.lane_id;
            of_batches := of_batches || lane.batch_id;
            took := took || take;
            last_rank := last_rank || lane.ranks[take];
            last_id := last_id || lane.job_ids[take];
            emptied := emptied || (not lane.more and take = coalesce(cardinality(lane.job_ids), 0));
            behind := behind || limit_ids[full_at];
        end loop;

        if chosen <> '{}' then
            claimed := start_jobs(worker, chosen, touched, of_batches, took, moment);
        end if;
        update lanes l
        set running = l.running + t.took,
            ready_at = case
                when t.emptied then (
                    select min(run_at) from jobs j where j.lane_id = l.id and j.state = 'scheduled')
                when t.took > 0 then moment
                else l.ready_at end,
            blocked_by = t.behind,
            head_rank = coalesce(t.rank, l.head_rank),
            head_id = coalesce(t.last_id, l.head_id)
        from unnest(touched, took, last_rank, last_id, emptied, behind)
            as t (id, took, rank, last_id, emptied, behind)
        where l.id = any (array[t.id]);
        if limit_ids <> '{}' then
            perform count_starts(limit_ids, counted, behind, moment);
        end if;
    end if;

    if room > 0 then
        select min(at) into next_at from (
            select l.ready_at as at from unnest(claim.tasks) as w (task)
            cross join lateral (
                select ready_at from lanes
                where lanes.task = w.task and ready_at is not null
                  and blocked_by is null and (slots is null or running < slots)
                order by ready_at limit 1) l
            union all
            select opens_at from limits where parked and opens_at > moment) soon;
    end if;
    update workers set idle = (chosen = '{}') where id = worker and idle <> (chosen = '{}');
    return json_build_object(
        'jobs', claimed,
        'wait', extract(epoch from next_at - moment),
        'since', since);
end $$;

-- Makes chosen jobs running, a new attempt and a new fence each, and tells it in their batches.
create function start_jobs(
    worker bigint, chosen bigint[], touched bigint[], of_batches uuid[], took integer[],
    moment timestamptz
) returns json
language plpgsql as $$
declare
    before integer[];
    expiry date[];
    of_labels jsonb[];
    watched uuid[];
    claimed json;
begin
    with counted as (
        update batches b
        set running = b.running + s.n,
            last_event = b.last_event + s.n + o.begins::integer,
            state = case b.state when 'pending' then 'processing' else b.state end,
            started_at = coalesce(b.started_at, moment)
        from (
            select batch_id, sum(n) as n from unnest(of_batches, took) as t (batch_id, n)
            where n > 0 group by batch_id) s
        cross join lateral (
            select started_at is null as begins from batches where id = s.batch_id offset 0) o
        where b.id = any (array[s.batch_id])
        returning b.*, b.last_event - s.n as before, o.begins
    ), begun as (
        insert into events (batch_id, number, tenant, type, data, at, expires_on)
        select id, c.before, tenant, 'batch_started', json_build_object('task', task, 'total', total),
            moment, expires_on
        from counted c where c.begins
    )
    select array_agg(c.before order by id), array_agg(expires_on order by id),
        array_agg(labels order by id), array_agg(id) filter (where watched_until > moment)
    into before, expiry, of_labels, watched from counted c;
    perform notify_watchers(watched);

    with started as (
        update jobs
        set state = 'running', attempt = attempt + 1, fence = nextval('fences'),
            worker_id = worker, started_at = moment
        where id = any (chosen)
        returning id, lane_id, priority, batch_id, position, task, tenant, key, attempt, snoozes, fence, payload,
            checkpoints, labels, created_at
    ), placed as (
        -- Nulls are last, so what has no batch takes no place of one that has.
        select *, dense_rank() over (order by batch_id) as place from started
    ), told as (
        insert into events (batch_id, number, tenant, type, job_id, position, data, at, expires_on)
        select batch_id, before[place] + row_number() over (partition by place order by fence),
            tenant, 'job_started', id, position,
            attempt_data(task, attempt), moment, expiry[place]
        from placed where batch_id is not null
    )
    -- By columns: for each value of a row, json_build_array would look its type up again.
    select json_build_array(
        json_agg(id), json_agg(fence), json_agg(lane_id), json_agg(task), json_agg(attempt),
        json_agg(payload::text), json_agg(batch_id), json_agg(position), json_agg(tenant),
        json_agg(key), json_agg(snoozes), json_agg(checkpoints),
        json_agg(coalesce(labels, of_labels[place])), json_agg(extract(epoch from created_at)))
    into claimed from (
        select * from placed order by array_position(touched, lane_id), priority desc, id) in_turn;
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
