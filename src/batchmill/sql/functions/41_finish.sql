-- Records outcomes: ends jobs or puts them back, counts them, numbers their events, and finishes batches.

-- The outcomes of attempts, as the worker reports them. `kinds` are completed, failed, retry, advance,
-- snooze, release and cancelled. `details` holds the result of a completed attempt; for other kinds, it holds
-- the fields that the kind needs: {"error", "delay", "task", "key", "payload"}. `progress` is the last
-- progress that each attempt reported, or null. `lanes` are the lanes that the jobs were claimed from.
do $$ begin
    create type outcomes as (
        ids bigint[], fences bigint[], kinds text[], details json, progress json, lanes bigint[]);
exception when duplicate_object then null;
end $$;

-- Records the outcomes of attempts: all of them or none. An attempt whose fence is no longer the newest
-- changes nothing. Returns the ids of the jobs whose outcome was refused for this reason.
create or replace function finish(
    ids bigint[], fences bigint[], kinds text[], details json, progress json, lanes bigint[]
) returns bigint[]
language plpgsql
set search_path = batchmill, pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
set plan_cache_mode = force_generic_plan as $$
declare
    o outcomes := (ids, fences, kinds, details, progress, lanes);
begin
    perform hold_limits_shared();
    return finish_held(o, lock_around(lanes_to_finish(o)));
end $$;

-- The lanes that the attempts end in, and the lanes where advanced jobs wait for their next stage.
create or replace function lanes_to_finish(o outcomes) returns bigint[]
language plpgsql as $$
declare
    target record;
    lane_ids bigint[] := o.lanes;
begin
    if 'advance' = any (o.kinds) then
        for target in
            select distinct s.detail ->> 'task' as task, j.tenant, j.batch_id, s.detail ->> 'key' as key
            from rows from (unnest(o.ids), unnest(o.fences), unnest(o.kinds), json_array_elements(o.details))
                as s (id, fence, kind, detail)
            cross join lateral (
                select * from jobs where jobs.id = s.id and jobs.fence = s.fence offset 0) j
            where s.kind = 'advance' order by 1, 2, 3, 4
        loop
            lane_ids := lane_ids || lane_for(target.task, target.tenant, target.batch_id, target.key);
        end loop;
    end if;
    return lane_ids;
end $$;

-- Does the work of `finish`. The caller holds all locks, so no other transaction can start or end these jobs.
create or replace function finish_held(o outcomes, limit_ids bigint[]) returns bigint[]
language plpgsql as $$
declare
    ended bigint[] := end_jobs(o, true, limit_ids, clock());
begin
    if cardinality(ended) = cardinality(o.ids) then
        return '{}';
    end if;
    return array(select unnest(o.ids) except select unnest(ended));
end $$;

-- Jobs of one batch, task, attempt number and outcome that have ended or wait again. `data` has the data of their
-- events, or is null if their task and attempt number say everything. The last three are the jobs that have reported
-- progress.
do $$ begin
    create type ended_group as (
        batch_id uuid, task text, attempt integer, kind text, ids bigint[], positions integer[], data json[],
        progress_ids bigint[], progress_positions integer[], progresses json[]);
exception when duplicate_object then null;
end $$;

-- Ends running or waiting jobs, or puts them back to wait. Updates their rows, the counts of their lanes,
-- limits and batches, and the events. A job with a cancel request can only end as cancelled. Returns the ids
-- of the jobs that had the expected state, fence and lane.
create or replace function end_jobs(o outcomes, were_running boolean, limit_ids bigint[], moment timestamptz)
returns bigint[]
language plpgsql as $$
declare
    moved record := move_jobs(o, were_running, moment);
    logged record := log_groups(moved.groups, were_running, moment);
begin
    if limit_ids <> '{}' and moved.lane_ids is not null then
        perform count_ends(moved.lane_ids, moved.counts);
    end if;
    if were_running and may_have_outputs(o.fences) then
        perform settle_outputs(o, moved.ended_ids, moved.cancelled_ids);
    end if;
    if moved.waiting_ids is not null then
        perform wait_in_lanes(moved.waiting_ids, moment);
        perform notify_workers(moved.stages);
    end if;
    if moved.watched_ids is not null then
        perform pg_notify('batchmill', topic('job:' || id)) from unnest(moved.watched_ids) as id;
    end if;
    if logged.watched_batches is not null then
        perform notify_watchers(logged.watched_batches);
    end if;
    if logged.finished_batches is not null then
        perform finish_batches(logged.finished_batches, moment);
    end if;
    return coalesce(moved.ended_ids, '{}');
end $$;

-- Moves jobs into the history, or puts them back to wait, and counts them in their lanes. In one statement, in which each
-- part reads the rows that earlier parts return:
--
--   reported   the outcomes, one row each
--   gone       jobs that end leave the live table
--   finished   and go into the history
--   back       the other jobs wait again
--   ended      both, in groups
--   freed      the lanes, with fewer running jobs
create or replace function move_jobs(
    o outcomes, were_running boolean, moment timestamptz,
    out ended_ids bigint[], out cancelled_ids bigint[], out watched_ids bigint[], out groups ended_group[],
    out lane_ids bigint[], out counts integer[], out waiting_ids bigint[], out stages text[]
)
language plpgsql as $$
begin
    with reported as materialized (
        select * from rows from (unnest(o.ids), unnest(o.fences), unnest(o.kinds),
            json_array_elements(o.details), json_array_elements(o.progress)
        ) as s (id, fence, kind, detail, progress)
    ), gone as (
        delete from jobs j using reported s
        where j.id = any (array[s.id]) and j.fence is not distinct from s.fence
          and (j.state = 'running') = were_running and (o.lanes is null or j.lane_id = any (o.lanes))
          and (ends_job(s.kind) or j.cancelled_at is not null)
        -- The columns that are read most often come first: to read a column, Postgres walks over all columns
        -- before it.
        returning j.id, j.lane_id, j.position, j.attempt, j.batch_id, j.watched,
            case when j.cancelled_at is null then s.kind else 'cancelled' end as kind, j.task, s.detail,
            reported_progress(s.progress) as last_progress, j.tenant, j.key, j.priority, j.run_at,
            j.snoozes, j.fence, j.worker_id, j.started_at, j.dedup_key, j.cache_key, j.payload, j.progress, j.checkpoints,
            case when has_error(s.kind) then attempts_with(j, s.detail, moment)
                else j.attempts end as history,
            j.labels, j.created_at, j.expires_on
    ), finished as (
        insert into finished (id, batch_id, position, task, tenant, key, state, priority, run_at,
            attempt, snoozes, fence, worker_id, started_at, finished_at, dedup_key, cache_key, payload,
            result, error, progress, checkpoints, attempts, labels, created_at, expires_on)
        select id, batch_id, position, task, tenant, key, kind::job_state, priority, run_at,
            attempt, snoozes, fence, worker_id, started_at, moment, dedup_key, cache_key, payload,
            case kind when 'completed' then detail end,
            case kind when 'failed' then (detail -> 'error')::jsonb end,
            coalesce(last_progress, progress), checkpoints, history, labels, created_at, expires_on
        from gone
    ), back as (
        update jobs j
        set state = state_after(s.kind),
            run_at = moment + make_interval(secs => coalesce((s.detail ->> 'delay')::float8, 0)),
            attempt = attempt_after(s.kind, j.attempt),
            snoozes = snoozes_after(s.kind, j.snoozes),
            attempts = case when has_error(s.kind) then attempts_with(j, s.detail, moment)
                else j.attempts end,
            task = case s.kind when 'advance' then s.detail ->> 'task' else j.task end,
            key = case s.kind when 'advance' then s.detail ->> 'key' else j.key end,
            payload = case s.kind when 'advance' then s.detail -> 'payload' else j.payload end,
            lane_id = case s.kind when 'advance'
                then lane_for(s.detail ->> 'task', j.tenant, j.batch_id, s.detail ->> 'key')
                else j.lane_id end,
            progress = coalesce(reported_progress(s.progress), j.progress),
            fence = null, worker_id = null, started_at = null
        from reported s
        cross join lateral (
            select lane_id, task, attempt from jobs where jobs.id = s.id offset 0) before
        where puts_back(s.kind)
          and j.id = any (array[s.id]) and j.fence = s.fence
          and j.lane_id = any (o.lanes) and j.cancelled_at is null
        returning j.id, j.batch_id, before.lane_id, j.position, before.task, before.attempt, s.kind,
            s.detail, reported_progress(s.progress) as last_progress, j.task as stage
    ), ended as (
        select batch_id, task, attempt, kind, array_agg(id) as ids, array_agg(position) as positions,
            array_agg(event_data(kind, task, attempt, detail)) filter (where not is_plain(kind)) as data,
            array_agg(id) filter (where last_progress is not null) as progress_ids,
            array_agg(position) filter (where last_progress is not null) as progress_positions,
            array_agg(last_progress) filter (where last_progress is not null) as progresses
        from (
            select id, batch_id, position, task, attempt, kind, detail, last_progress from gone
            union all
            select id, batch_id, position, task, attempt, kind, detail, last_progress from back) e
        group by batch_id, task, attempt, kind
    ), freed as (
        update lanes l set running = l.running - e.n
        from (
            select lane_id, count(*)::integer as n
            from (select lane_id from gone union all select lane_id from back) left_behind
            group by lane_id) e
        where were_running and l.id = any (array[e.lane_id])
        returning l.id, e.n
    )
    select (select array_agg(id) from ended cross join lateral unnest(ids) as id),
        (select array_agg(id) from ended cross join lateral unnest(ids) as id where kind = 'cancelled'),
        (select array_agg(id) from gone where watched),
        (select array_agg(row (batch_id, task, attempt, kind, ids, positions, data, progress_ids,
            progress_positions, progresses)::ended_group) from ended),
        (select array_agg(id) from freed), (select array_agg(n) from freed),
        (select array_agg(id) from back), (select array_agg(distinct stage) from back)
    into ended_ids, cancelled_ids, watched_ids, groups, lane_ids, counts, waiting_ids, stages;
end $$;

-- Adds the events of ended jobs to the logs of their batches, and counts the jobs in the batches:
--
--   blocks     the events of each group; progress comes first
--   counted    the batches, with new counters and the number of their last event
--   logged     the events, with their numbers
create or replace function log_groups(
    groups ended_group[], were_running boolean, moment timestamptz,
    out watched_batches uuid[], out finished_batches uuid[]
)
language plpgsql as $$
begin
    with ended as (
        select * from unnest(groups)
    ), blocks as (
        select batch_id, type, cardinality(ids) as n, row (type,
            sum(cardinality(ids)) over (
                partition by batch_id order by type <> 'job_progress', type, task, attempt
                rows unbounded preceding),
            ids, positions, data)::unnumbered_block as block
        from (
            select batch_id, event_type(kind) as type, task, attempt, ids, positions,
                coalesce(data, array[attempt_data(task, attempt)]) as data
            from ended
            union all
            select batch_id, 'job_progress', task, attempt, progress_ids, progress_positions, progresses
            from ended where progresses is not null
        ) entries
        where batch_id is not null
    ), counted as (
        update batches b
        set running = b.running - case when were_running then e.ended else 0 end,
            completed = b.completed + e.completed,
            failed = b.failed + e.failed,
            cancelled = b.cancelled + e.cancelled,
            last_event = b.last_event + e.events
        from (
            select batch_id, sum(n)::integer as events, array_agg(block) as blocks,
                coalesce(sum(n) filter (where type <> 'job_progress'), 0) as ended,
                coalesce(sum(n) filter (where type = 'job_completed'), 0) as completed,
                coalesce(sum(n) filter (where type = 'job_failed'), 0) as failed,
                coalesce(sum(n) filter (where type = 'job_cancelled'), 0) as cancelled
            from blocks group by batch_id) e
        where b.id = any (array[e.batch_id])
        returning b.*, b.last_event - e.events as before, e.blocks
    ), logged as (
        insert into event_blocks (batch_id, last_number, tenant, type, job_ids, positions, data, at,
            expires_on)
        select c.id, c.before + t.upto, c.tenant, t.type, t.job_ids, t.positions, t.data, moment,
            c.expires_on
        from counted c cross join lateral unnest(c.blocks) t
    )
    select (select array_agg(id) from counted where watched_until > moment),
        (select array_agg(id) from counted where completed + failed + cancelled = total)
    into watched_batches, finished_batches;
end $$;

-- Subtracts ended attempts from the counts of the limits over their lanes.
create or replace function count_ends(lane_ids bigint[], counts integer[]) returns void
language sql
begin atomic
    update limits m set running = m.running - e.n
    from (
        select n.name, sum(c.n) as n
        from unnest(lane_ids, counts) as c (lane_id, n)
        cross join lateral (select * from lanes where lanes.id = c.lane_id offset 0) l
        cross join lateral limit_names(l.task, l.tenant, l.batch_id, l.key) n
        group by n.name) e
    where m.name = any (array[e.name]);
end;

create or replace function reported_progress(progress json) returns json
language sql stable
return case when progress::text <> 'null' then progress end;

-- The attempts of a job that did not succeed, including the one that ends now.
create or replace function attempts_with(j jobs, detail json, moment timestamptz) returns jsonb
language sql stable
return coalesce(j.attempts, '[]') || jsonb_build_array(
    (detail -> 'error')::jsonb || jsonb_build_object(
        'task', j.task, 'attempt', j.attempt, 'started_at', j.started_at, 'ended_at', moment,
        'worker', (select name from workers where id = j.worker_id)));
