-- Queries for operators. They count jobs up to %(cap)s and use indexes, so that a million waiting jobs cost
-- no more than ten thousand. A waiting job whose time has come counts as ready, whether or not a claim has
-- looked at it since.

-- name: walk_indexes
select set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true),
    set_config('statement_timeout', '20s', true)

-- name: tasks_overview
-- Includes a built-in task only if it has jobs, or had some recently.
with waiting as materialized (
    select id, task from batchmill.lanes where ready_at is not null
), loose as materialized (
    select task, run_at from batchmill.jobs
    where lane_id is null order by submitted_by limit %(cap)s::bigint
), running as materialized (
    select task, sum(running) as n from batchmill.lanes where running > 0 group by task
), recent as materialized (
    select task, sum(jobs) as n, sum(wait_seconds) as wait_seconds, sum(run_seconds) as run_seconds
    from batchmill.statistics
    where minute >= date_trunc('minute', batchmill.clock()) - make_interval(mins => %(minutes)s::integer)
      and state <> 'cancelled'
    group by task
)
select t.name,
    least(%(cap)s::bigint, ready.n + loose.ready) as ready,
    least(%(cap)s::bigint, later.n + loose.later) as scheduled,
    coalesce(running.n, 0) as running,
    (select count(*) from batchmill.workers w
     where t.name = any (w.tasks) and w.state = 'live' and w.lease_until > batchmill.clock()) as workers,
    extract(epoch from batchmill.clock() - least(oldest.at, loose.oldest))::float8 as oldest_ready_seconds,
    coalesce(recent.n, 0) / (60.0 * %(minutes)s::integer)::float8 as jobs_per_second,
    (recent.wait_seconds / recent.n)::float8 as average_wait_seconds,
    (recent.run_seconds / recent.n)::float8 as average_run_seconds
from batchmill.tasks t
left join running on running.task = t.name
left join recent on recent.task = t.name
cross join lateral (
    select count(*) as n from (
        select from waiting w
        cross join lateral (
            (select from batchmill.jobs j
             where j.lane_id = w.id and not j.is_scheduled and j.state = 'ready' limit %(cap)s::bigint)
            union all
            (select from batchmill.jobs j
             where j.lane_id = w.id and j.is_scheduled and j.run_at <= batchmill.clock()
             limit %(cap)s::bigint)
        ) j where w.task = t.name limit %(cap)s::bigint) counted
) ready
cross join lateral (
    select count(*) as n from (
        select from waiting w
        cross join lateral (
            select from batchmill.jobs j
            where j.lane_id = w.id and j.is_scheduled and j.run_at > batchmill.clock()
            limit %(cap)s::bigint
        ) j where w.task = t.name limit %(cap)s::bigint) counted
) later
cross join lateral (
    select min(head.run_at) as at from waiting w
    cross join lateral (
        (select j.run_at from batchmill.jobs j
         where j.lane_id = w.id and not j.is_scheduled and j.state = 'ready' order by -j.priority, j.id + 0 limit 1)
        union all
        (select j.run_at from batchmill.jobs j
         where j.lane_id = w.id and j.is_scheduled and j.run_at <= batchmill.clock()
         order by j.run_at limit 1)
    ) head where w.task = t.name
) oldest
cross join lateral (
    select count(*) filter (where run_at <= batchmill.clock()) as ready,
        count(*) filter (where run_at > batchmill.clock()) as later,
        min(run_at) filter (where run_at <= batchmill.clock()) as oldest
    from loose where loose.task = t.name
) loose
where not batchmill.is_builtin(t.name)
   or ready.n + later.n + loose.ready + loose.later + coalesce(running.n, recent.n, 0) > 0
order by t.name

-- name: busiest_lanes
select l.task, l.tenant, l.batch_id, l.key, l.running, l.slots, waiting.n as waiting,
    case when m.id is not null then m.name
         when l.running >= l.slots then 'task:' || l.task || '/batch:*' end as blocked_by,
    coalesce(m.paused, false) as paused
from (
    select * from batchmill.lanes where ready_at <= batchmill.clock()
    order by ready_at limit %(lanes)s::bigint) l
left join batchmill.limits m on m.id = l.blocked_by
cross join lateral (
    select count(*) as n from (
        (select from batchmill.jobs j
         where j.lane_id = l.id and not j.is_scheduled and j.state = 'ready' limit %(cap)s::bigint)
        union all
        (select from batchmill.jobs j
         where j.lane_id = l.id and j.is_scheduled and j.run_at <= batchmill.clock()
         limit %(cap)s::bigint)
        limit %(cap)s::bigint) counted
) waiting
where waiting.n > 0
order by waiting.n desc, l.task, l.tenant, l.id limit %(count)s::bigint

-- name: limits_in_use
select name, nullif(coalesce(set_slots, declared_slots), 2147483647) as slots, running, rate, period, paused,
    set_slots is not null or set_rate is not null as is_set
from (select * from batchmill.limits union all select * from batchmill.provider_limits()) m
where (running > 0 or paused or parked) and (slots is not null or rate is not null)
order by paused desc, parked desc, name limit %(count)s::bigint

-- name: workers_overview
select w.id, w.name, w.version, w.tasks, w.concurrency,
    case when w.state in ('live', 'draining') and w.lease_until < batchmill.clock()
        then 'lost' else w.state end as state,
    w.started_at, extract(epoch from w.lease_until - batchmill.clock())::float8 as lease_seconds,
    (select count(*) from batchmill.running_jobs() j where j.worker_id = w.id) as running
from batchmill.workers w
where w.state in ('live', 'draining')
   or w.state = 'lost' and w.lease_until > batchmill.clock() - make_interval(secs => %(seconds)s::float8)
order by array_position('{live,draining,lost}', w.state), w.id limit %(count)s::bigint

-- name: pools
-- One statement, so one snapshot: the running jobs of each worker, with the pool of each.
with shown as materialized (
    select w.id, w.name, w.tasks, w.concurrency, coalesce(s.pools, '{}') as pools, coalesce(s.slots, '[]') as slots
    from batchmill.workers w left join batchmill.worker_slots s on s.worker_id = w.id
    where w.state in ('live', 'draining') and w.lease_until > batchmill.clock()
    order by w.id limit %(count)s::bigint
), running as materialized (
    select j.id, j.batch_id, j.tenant, j.task, j.started_at, j.worker_id, p.pool,
        row_number() over (partition by j.worker_id, p.pool order by j.fence) as place
    from batchmill.running_jobs() j join shown w on w.id = j.worker_id
    cross join lateral (select case when w.pools ? j.task then j.task else %(shared)s::text end as pool) p
)
select w.*, (
        select coalesce(json_agg(json_build_object('id', r.id, 'batch_id', r.batch_id, 'tenant', r.tenant,
            'task', r.task, 'started_at', r.started_at, 'pool', r.pool) order by r.pool, r.place), '[]')
        from running r where r.worker_id = w.id and r.place <= %(most)s::bigint) as running,
    (
        select coalesce(json_agg(counted), '[]') from (
            select pool, count(*) as jobs from running r where r.worker_id = w.id group by pool) counted) as counts
from shown w order by w.id

-- name: one_snapshot
set transaction isolation level repeatable read

-- name: ended_by_task
-- Adds up the minutes in `statistics`, and the jobs that have ended after the last of these minutes.
with window_of as (
    select batchmill.clock() as at,
        date_trunc('minute', batchmill.clock()) - make_interval(mins => %(minutes)s::integer) as since
), ended as (
    select s.task, s.state, s.jobs, s.wait_seconds, s.run_seconds
    from window_of w join batchmill.statistics s on s.minute >= w.since
    union all
    select f.task, f.state, 1, coalesce(extract(epoch from f.started_at - f.run_at), 0),
        coalesce(extract(epoch from f.finished_at - f.started_at), 0)
    from batchmill.finished f
    where f.finished_at >= greatest((select since from window_of),
        (select max(minute) + interval '1 minute' from batchmill.statistics))
)
select w.at, w.since,
    (select count(*) from batchmill.workers where state = 'live' and lease_until > batchmill.clock()) as workers,
    (select coalesce(json_agg(counted), '[]') from (
        select task, coalesce(sum(jobs) filter (where state = 'completed'), 0) as completed,
            coalesce(sum(jobs) filter (where state = 'failed'), 0) as failed,
            coalesce(sum(jobs) filter (where state = 'cancelled'), 0) as cancelled,
            sum(wait_seconds) filter (where state <> 'cancelled') as wait_seconds,
            sum(run_seconds) filter (where state <> 'cancelled') as run_seconds
        from ended group by task) counted) as tasks
from window_of w

-- name: failures_by_code
select task, code, count(*) as jobs, max(finished_at) as last_at,
    (array_agg(id order by finished_at desc))[1] as last_job_id,
    (array_agg(message order by finished_at desc))[1] as last_message
from (
    select id, task, error ->> 'code' as code, error ->> 'message' as message, finished_at
    from batchmill.finished
    where state = 'failed' and finished_at > batchmill.clock() - make_interval(secs => %(seconds)s::float8)
    order by finished_at desc limit %(cap)s::bigint) failed
group by task, code order by count(*) desc, task, code

-- name: list_batches
-- Returns fewer than `count` batches if their labels exceed `bytes`. `candidates` is the number without that
-- bound.
select id, tenant, task, state, total, running, completed, failed, cancelled, duplicates, last_event,
    generation, labels, created_at, started_at, finished_at, cancelled_at, expires_at, candidates
from (
    select *, count(*) over () as candidates, sum(octet_length(labels::text)) over inorder
        - octet_length(labels::text) as bytes_before
    from (
        select * from batchmill.batches
        where (%(state)s::text is null or state::text = %(state)s)
          and (%(task)s::text is null or task = %(task)s)
          and (%(tenant)s::text is null or tenant = %(tenant)s)
          and (%(before)s::timestamptz is null or (created_at, id) < (%(before)s, %(before_id)s::uuid))
        order by created_at desc, id desc limit %(count)s::bigint
    ) newest
    window inorder as (order by created_at desc, id desc)
) page
where %(bytes)s::bigint is null or bytes_before < %(bytes)s::bigint
order by created_at desc, id desc

-- name: list_jobs
-- Searches the newest live jobs, failed jobs, and other ended jobs, up to `cap` of each. Shows jobs of a
-- built-in task only if the caller names the task.
select id, batch_id, position, task, tenant, state, priority, attempt, run_at, created_at, started_at,
    finished_at, extract(epoch from coalesce(finished_at, batchmill.clock()) - started_at)::float8
        as run_seconds, error ->> 'code' as code, error ->> 'message' as message, progress
from (
    (select id, batch_id, position, task, tenant, state, priority, attempt, run_at, created_at,
        started_at, null::timestamptz as finished_at, null::jsonb as error, progress
     from batchmill.jobs
     where %(state)s::text is null or %(state)s in ('ready', 'scheduled', 'running')
     order by id desc limit %(cap)s::bigint)
    union all
    (select id, batch_id, position, task, tenant, state, priority, attempt, run_at, created_at,
        started_at, finished_at, error, progress
     from batchmill.finished
     where state = 'failed' and (%(state)s::text is null or %(state)s = 'failed')
     order by finished_at desc limit %(cap)s::bigint)
    union all
    (select id, batch_id, position, task, tenant, state, priority, attempt, run_at, created_at,
        started_at, finished_at, error, progress
     from batchmill.finished
     where state <> 'failed' and (%(state)s::text is null or %(state)s in ('completed', 'cancelled'))
     order by id desc limit %(cap)s::bigint)
) newest
where (%(state)s::text is null or state::text = %(state)s)
  and case when %(task)s::text is null then not batchmill.is_builtin(task) else task = %(task)s end
  and (%(tenant)s::text is null or tenant = %(tenant)s)
order by id desc limit %(count)s::bigint

-- name: list_jobs_of_batch
-- Reads the next jobs and returns those that match, and how far it has read: possibly none of them match.
-- Each part reads an index in its order, so a page costs the same in a batch of any size.
with seen as materialized (
    select * from (
        (select id, batch_id, position, task, tenant, state, priority, attempt, run_at, created_at,
            started_at, null::timestamptz as finished_at, null::jsonb as error, progress
         from batchmill.jobs
         where (%(state)s::text is null or %(state)s in ('ready', 'scheduled', 'running'))
           and batch_id = %(batch)s and position > %(after)s::bigint
         order by position limit %(look)s::bigint)
        union all
        (select id, batch_id, position, task, tenant, state, priority, attempt, run_at, created_at,
            started_at, finished_at, error, progress
         from batchmill.finished
         where (%(state)s::text is null or %(state)s = 'completed')
           and batch_id = %(batch)s and position > %(after)s::bigint
           and expires_on = (select expires_on from batchmill.batches where id = %(batch)s)
         order by position limit %(look)s::bigint)
        union all
        (select id, batch_id, position, task, tenant, state, priority, attempt, run_at, created_at,
            started_at, finished_at, error, progress
         from batchmill.finished
         where %(state)s::text = 'failed' and state = 'failed'
           and batch_id = %(batch)s and position > %(after)s::bigint
           and expires_on = (select expires_on from batchmill.batches where id = %(batch)s)
         order by position limit %(look)s::bigint)
        union all
        (select id, batch_id, position, task, tenant, state, priority, attempt, run_at, created_at,
            started_at, finished_at, error, progress
         from batchmill.finished
         where %(state)s::text = 'cancelled' and state = 'cancelled'
           and batch_id = %(batch)s and position > %(after)s::bigint
           and expires_on = (select expires_on from batchmill.batches where id = %(batch)s)
         order by position limit %(look)s::bigint)
    ) jobs order by position limit %(look)s::bigint
)
select reach.upto, reach.is_last, found.*
from (select max(position) as upto, count(*) < %(look)s::bigint as is_last from seen) reach
left join (
    select id, batch_id, position, task, tenant, state, priority, attempt, run_at, created_at, started_at,
        finished_at, extract(epoch from coalesce(finished_at, batchmill.clock()) - started_at)::float8
            as run_seconds, error ->> 'code' as code, error ->> 'message' as message, progress
    from seen
    where (%(state)s::text is null or state::text = %(state)s)
      and (%(task)s::text is null or task = %(task)s)
      and (%(tenant)s::text is null or tenant = %(tenant)s)
    order by position limit %(count)s::bigint) found on true
order by found.position

-- name: tasks
select name, keyed, payload_limit, priority, registered_at from batchmill.tasks
where entry and not batchmill.is_builtin(name) order by name

-- name: task_names
select name from batchmill.tasks order by name

-- name: limit_names
select name from batchmill.limits union all select name from batchmill.providers order by name limit 1000

-- name: schedule_names
select name from batchmill.schedules order by name

-- name: server_facts
select current_setting('server_version') as version, current_database() as database, current_user as user,
    clock_timestamp() as now,
    pg_is_in_recovery() as is_standby,
    current_setting('autovacuum')::boolean as autovacuum,
    pg_notification_queue_usage() as notify_queue,
    current_setting('max_connections')::integer
        - current_setting('superuser_reserved_connections')::integer as connections,
    (select count(*) from pg_stat_activity where backend_type = 'client backend') as connected

-- name: held_horizons
select 'the prepared transaction ' || gid as holder,
    extract(epoch from clock_timestamp() - prepared)::float8 as seconds
from pg_prepared_xacts where database = current_database()
union all
select 'the replication slot ' || slot_name || case when active then '' else ', which is inactive,' end,
    null
from pg_replication_slots where (xmin is not null or catalog_xmin is not null) and not active

-- name: abandoned_jobs
select j.worker_id, max(w.name) as worker, count(*) as jobs, (array_agg(j.id))[1:5] as some
from batchmill.running_jobs() j left join batchmill.workers w on w.id = j.worker_id
where w.id is null or w.state in ('lost', 'stopped') or w.lease_until < batchmill.clock()
group by j.worker_id order by count(*) desc

-- name: upkeep_leader
select w.name, extract(epoch from l.until - batchmill.clock())::float8 as seconds
from batchmill.leases l left join batchmill.workers w on w.id = l.worker_id
where l.name = 'upkeep'

-- name: missing_partitions
select count(*) as missing from unnest(array['finished', 'event_blocks']) as parent
cross join generate_series(0, %(days)s::integer) as ahead
where to_regclass(format('batchmill.%%s_%%s', parent,
    to_char(batchmill.day_of(batchmill.clock()) + ahead, 'YYYYMMDD'))) is null

-- name: hot_tables
select c.relname as name, coalesce(s.n_live_tup, 0) as live, coalesce(s.n_dead_tup, 0) as dead,
    greatest(s.last_vacuum, s.last_autovacuum) as vacuumed_at,
    coalesce('autovacuum_enabled=false' = any (c.reloptions), false) as is_left_out
from pg_class c
join pg_namespace n on n.oid = c.relnamespace and n.nspname = 'batchmill'
left join pg_stat_user_tables s on s.relid = c.oid
where c.relname in ('jobs', 'lanes', 'batches', 'limits', 'workers', 'holds', 'providers')
order by c.relname
