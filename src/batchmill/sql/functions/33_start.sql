-- Starts the chosen jobs: their rows, the events of their batches, and the counts of their limits.

-- A claim is returned by columns, not by rows: for each value of a row, json_build_array would look up its type
-- again. These two functions alone define which columns there are, and their order. They name the fields of
-- `Claim` in domain/job.py; a test compares the names.
create or replace function job_columns(
    id json, fence json, lane json, attempt json, payload json, "position" json, snoozes json,
    checkpoints json, waited json, own_labels json
) returns json
language sql stable
return json_build_array(id, fence, lane, attempt, payload, "position", snoozes, checkpoints, waited, own_labels);

create or replace function lane_columns(
    lane json, task json, tenant json, key json, batch_id json, batch_labels json
) returns json
language sql stable
return json_build_array(lane, task, tenant, key, batch_id, batch_labels);

-- The seconds between the due time of a job and its start.
create or replace function waited(run_at timestamptz, moment timestamptz) returns double precision
language sql immutable
return greatest(date_part('epoch', moment - run_at), 0);

-- Starts the chosen jobs, each with a new attempt and a new fence, and adds the events to their batches.
-- Returns the jobs in the order of the lanes in `touched`, and the values that the jobs of each lane share.
create or replace function start_jobs(worker bigint, chosen bigint[], touched bigint[], moment timestamptz)
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
            select batch_id, sum(n)::integer as n, array_agg(block) as blocks
            from (
                select batch_id, count(*) as n, row ('job_started',
                    sum(count(*)) over (partition by batch_id order by task, attempt),
                    array_agg(id), array_agg(position), array[attempt_data(task, attempt)]
                )::unnumbered_block as block
                from started where batch_id is not null group by batch_id, task, attempt) t
            group by batch_id) s
        cross join lateral (
            select started_at is null as begins from batches where id = s.batch_id offset 0) o
        where b.id = any (array[s.batch_id])
        returning b.*, b.last_event - s.n as before, o.begins, s.blocks
    ), logged as (
        insert into event_blocks (batch_id, last_number, tenant, type, job_ids, positions, data, at,
            expires_on)
        select id, before, tenant, 'batch_started', '{null}', '{null}',
            array[json_build_object('task', task, 'total', total)], moment, expires_on
        from counted c where begins
        union all
        select c.id, c.before + t.upto, c.tenant, t.type, t.job_ids, t.positions, t.data, moment,
            c.expires_on
        from counted c cross join lateral unnest(c.blocks) t
    )
    select json_build_object(
            'lanes', (
                select lane_columns(lane => json_agg(id), task => json_agg(task), tenant => json_agg(tenant),
                    key => json_agg(key), batch_id => json_agg(batch_id),
                    batch_labels => json_agg((select labels from batches where id = batch_id)))
                from lanes where id = any (touched)),
            'jobs', job_columns(id => json_agg(id), fence => json_agg(fence), lane => json_agg(lane_id),
                attempt => json_agg(attempt), payload => json_agg(payload::text),
                "position" => json_agg(position), snoozes => json_agg(snoozes),
                checkpoints => json_agg(checkpoints), waited => json_agg(waited(run_at, moment)),
                own_labels => json_agg(labels))),
        (select array_agg(id) from counted where watched_until > moment)
    into claimed, watched
    from (
        select * from started order by array_position(touched, lane_id), priority desc, id) in_turn;
    perform notify_watchers(watched);
    return claimed;
end $$;

-- Counts starts on limits, records their times if the limit has a rate, and notes whether lanes are parked
-- behind the limit.
create or replace function count_starts(
    limit_ids bigint[], counted integer[], behind bigint[], moment timestamptz
) returns void language plpgsql as $$
begin
    update limits m
    set running = m.running + c.n,
        started_at = recent.at,
        started = recent.n,
        -- Not `exists`: the planner may hash all lanes for it.
        parked = (select true from lanes l where l.blocked_by = m.id limit 1) is not null,
        opens_at = recent.at[1] + make_interval(secs => m.period)
    from unnest(limit_ids, counted) as c (id, n)
    cross join lateral (select * from limits where limits.id = c.id offset 0) o
    cross join lateral add_starts(
        o.started_at, o.started, o.period, case when o.rate is null then 0 else c.n end, moment) recent
    where m.id = any (array[c.id]) and (c.n > 0 or o.parked or m.id = any (behind));
end $$;
