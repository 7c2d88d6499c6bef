-- How an attempt ended, as its worker tells it.
create type outcome as (
    id bigint, fence bigint, kind text, result json, error jsonb, delay double precision,
    task text, key text, payload json, progress json
);

-- The same, once it is known to be the newest attempt, with the job as it was.
create type ending as (
    id bigint, kind text, result json, error jsonb, delay double precision,
    task text, key text, payload json, progress json,
    lane_id bigint, batch_id uuid, position integer, tenant text, attempt integer,
    was_task text, was_key text
);

-- Records how attempts ended, all of them or none: completed, failed, retry, advance, snooze, release
-- or cancelled. `lanes` are those the jobs were claimed from. An attempt whose fence is no longer the
-- newest changes nothing. Returns the ids of the jobs whose outcome was refused for that.
create function finish(outcomes json, lanes bigint[]) returns bigint[]
language plpgsql
set search_path = batchmill, pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
    moment timestamptz;
    ended ending[];
    done uuid[];
begin
    perform hold_limits_shared();
    if strpos(outcomes::text, '"advance"') > 0 then
        perform lock_around(finish.lanes || lanes_to_advance_to(outcomes));
    else
        perform lock_around(finish.lanes);
    end if;
    moment := clock();

    -- Their lanes are held, so nobody else starts or ends these jobs now. What was cancelled meanwhile can only end as cancelled.
    select array_agg(row (o.id, case when j.cancelled_at is null then o.kind else 'cancelled' end,
            o.result, o.error, o.delay, o.task, o.key, o.payload, o.progress,
            j.lane_id, j.batch_id, j.position, j.tenant, j.attempt, j.task, j.key)::ending)
    into ended
    from (
        select distinct on (id, fence) * from json_populate_recordset(null::outcome, outcomes)) o
    cross join lateral (
        select * from jobs
        where jobs.id = o.id and fence = o.fence and lane_id = any (finish.lanes) offset 0) j;

    if ended is not null then
        perform count_ends(ended);
        done := tell_ends(ended, true, moment);
        perform move_to_finished(ended, moment);
        perform put_back(ended, moment);
        perform finish_batches(done, moment);
    end if;
    if cardinality(ended) = json_array_length(outcomes) then
        return '{}';
    end if;
    return array(
        select id from json_populate_recordset(null::outcome, outcomes)
        except select id from unnest(ended));
end $$;

-- The lanes where jobs that advance will wait.
create function lanes_to_advance_to(outcomes json) returns bigint[]
language plpgsql as $$
declare
    target record;
    lane_ids bigint[];
begin
    for target in
        select distinct o.task, j.tenant, j.batch_id, o.key
        from json_populate_recordset(null::outcome, outcomes) o
        cross join lateral (
            select * from jobs where jobs.id = o.id and jobs.fence = o.fence offset 0) j
        where o.kind = 'advance' order by 1, 2, 3, 4
    loop
        lane_ids := lane_ids || lane_for(target.task, target.tenant, target.batch_id, target.key);
    end loop;
    return lane_ids;
end $$;

-- Takes ended attempts off the counts of their lanes and limits.
create function count_ends(ended ending[]) returns void
language plpgsql as $$
begin
    update lanes l set running = l.running - e.n
    from (select lane_id, count(*) as n from unnest(ended) group by lane_id) e
    where l.id = any (array[e.lane_id]);
    if have_limits(array(select lane_id from unnest(ended))) then
        update limits m set running = m.running - e.n
        from (
            select n.name, sum(l.n) as n
            from (
                select was_task, tenant, batch_id, was_key, count(*) as n from unnest(ended)
                group by was_task, tenant, batch_id, was_key) l
            cross join lateral limit_names(l.was_task, l.tenant, l.batch_id, l.was_key) n
            group by n.name) e
        where m.name = any (array[e.name]);
    end if;
end $$;

-- Counts ended attempts in their batches and writes their events. Returns the batches that are done.
create function tell_ends(ended ending[], were_running boolean, moment timestamptz) returns uuid[]
language plpgsql as $$
declare
    before integer[];
    expiry date[];
    watched uuid[];
    done uuid[];
begin
    with counted as (
        update batches b
        set running = b.running - case when were_running then e.n else 0 end,
            completed = b.completed + e.completed,
            failed = b.failed + e.failed,
            cancelled = b.cancelled + e.cancelled,
            last_event = b.last_event + e.events
        from (
            select batch_id, count(*) as n, count(*) + count(progress) as events,
                count(*) filter (where kind = 'completed') as completed,
                count(*) filter (where kind = 'failed') as failed,
                count(*) filter (where kind = 'cancelled') as cancelled
            from unnest(ended) where batch_id is not null group by batch_id) e
        where b.id = any (array[e.batch_id])
        returning b.*, b.last_event - e.events as before
    )
    select array_agg(c.before order by id), array_agg(expires_on order by id),
        array_agg(id) filter (where watched_until > moment),
        array_agg(id) filter (where completed + failed + cancelled = total)
    into before, expiry, watched, done from counted c;

    insert into events (batch_id, number, tenant, type, job_id, position, data, at, expires_on)
    select batch_id,
        before[place] + row_number() over (partition by place order by turn, step),
        tenant, type, id, position, data, moment, expiry[place]
    from (
        select e.*, dense_rank() over (order by e.batch_id) as place, t.*
        from unnest(ended) with ordinality as e (id, kind, result, error, delay, task, key, payload,
            progress, lane_id, batch_id, position, tenant, attempt, was_task, was_key, turn)
        cross join lateral (
            select 1 as step, 'job_progress' as type, e.progress as data where e.progress is not null
            union all
            select 2, o.type, o.data from event_of(e.kind, e.attempt, e.was_task, e.task, e.error, e.delay) o
        ) t
        where e.batch_id is not null
    ) entries;
    perform notify_watchers(watched);
    return done;
end $$;

-- Most events tell this; the name of a task needs no escaping.
create function attempt_data(task text, attempt integer) returns json
language sql stable as $$
    select ('{"task": "' || task || '", "attempt": ' || attempt || '}')::json
$$;

create function event_of(
    kind text, attempt integer, was_task text, task text, error jsonb, delay double precision
) returns table (type text, data json)
language sql stable as $$
    select case kind
        when 'completed' then 'job_completed'
        when 'failed' then 'job_failed'
        when 'retry' then 'job_retrying'
        when 'advance' then 'job_stage'
        when 'snooze' then 'job_snoozed'
        when 'release' then 'job_released'
        when 'cancelled' then 'job_cancelled'
    end,
    case kind
        when 'failed' then json_build_object('task', was_task, 'attempt', attempt,
            'code', error ->> 'code', 'message', error ->> 'message')
        when 'retry' then json_build_object('task', was_task, 'attempt', attempt,
            'code', error ->> 'code', 'message', error ->> 'message', 'delay', delay)
        when 'advance' then json_build_object('from', was_task, 'task', task)
        when 'snooze' then json_build_object('task', was_task, 'delay', delay)
        else attempt_data(was_task, attempt)
    end
$$;

-- One attempt that did not succeed, as it is kept with the job.
create function attempt_entry(j jobs, error jsonb, moment timestamptz) returns jsonb
language sql stable as $$
    select jsonb_build_array(error || jsonb_build_object(
        'task', j.task, 'attempt', j.attempt, 'started_at', j.started_at, 'ended_at', moment,
        'worker', (select name from workers where id = j.worker_id)))
$$;

create function move_to_finished(ended ending[], moment timestamptz) returns void
language plpgsql as $$
begin
    with gone as (
        delete from jobs j using unnest(ended) e
        where j.id = any (array[e.id]) and e.kind in ('completed', 'failed', 'cancelled')
        returning j.*, e.kind, e.result, e.error, e.progress as last_progress,
            case when e.error is null then j.attempts
                else coalesce(j.attempts, '[]') || attempt_entry(j, e.error, moment) end as history
    ), rung as (
        select count(pg_notify('batchmill', 'job:' || id)) from gone where watched
    )
    insert into finished (id, batch_id, position, task, tenant, key, state, priority, run_at,
        attempt, snoozes, fence, worker_id, started_at, finished_at, dedup_key, cache_key, payload,
        result, error, progress, checkpoints, attempts, labels, created_at, expires_on)
    select id, batch_id, position, task, tenant, key, kind::job_state, priority, run_at,
        attempt, snoozes, fence, worker_id, started_at, moment, dedup_key, cache_key, payload,
        case when kind = 'completed' then coalesce(result, 'null') end, case when kind = 'failed' then error end,
        coalesce(last_progress, progress), checkpoints, history, labels, created_at, expires_on
    from gone cross join rung;
end $$;

-- Puts jobs back to wait: at their stage after a delay or at once, or at the next stage.
create function put_back(ended ending[], moment timestamptz) returns void
language plpgsql as $$
declare
    kept bigint[];
    stages text[];
begin
    with put as (
        update jobs j
        set state = case when e.kind in ('retry', 'snooze') then 'scheduled' else 'ready' end::job_state,
            run_at = moment + make_interval(secs => coalesce(e.delay, 0)),
            attempt = case e.kind when 'retry' then j.attempt when 'advance' then 0 else j.attempt - 1 end,
            snoozes = case e.kind when 'snooze' then j.snoozes + 1 when 'advance' then 0
                else j.snoozes end,
            attempts = case when e.error is null then j.attempts
                else coalesce(j.attempts, '[]') || attempt_entry(j, e.error, moment) end,
            task = coalesce(e.task, j.task),
            key = case e.kind when 'advance' then e.key else j.key end,
            payload = case e.kind when 'advance' then coalesce(e.payload, 'null') else j.payload end,
            lane_id = case e.kind when 'advance' then lane_for(e.task, j.tenant, j.batch_id, e.key)
                else j.lane_id end,
            progress = coalesce(e.progress, j.progress),
            checkpoints = case when e.kind <> 'advance' then j.checkpoints end,
            fence = null, worker_id = null, started_at = null
        from unnest(ended) e
        where j.id = any (array[e.id]) and e.kind in ('retry', 'advance', 'snooze', 'release')
        returning j.id, e.task
    )
    select array_agg(id), array_agg(distinct put.task) into kept, stages from put;
    if kept is not null then
        perform wait_in_lanes(kept, moment);
        perform notify_workers(stages);
    end if;
end $$;
