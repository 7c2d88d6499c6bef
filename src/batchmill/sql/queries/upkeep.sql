-- name: look_after
select json_build_object(
    'found', batchmill.look_after(%(worker)s::bigint, %(seconds)s::float8),
    'wait', extract(epoch from least(
        (select min(lease_until) from batchmill.workers where state in ('live', 'draining')),
        (select min(next_at) from batchmill.schedules where not paused)) - batchmill.clock()))

-- name: fire_schedule
select batchmill.fire_schedule(%(tenant)s, %(name)s, %(expected)s, %(times)s::timestamptz[], %(then_at)s,
    %(reason)s)

-- name: wait_briefly
select set_config('lock_timeout', '200ms', true)

-- name: make_partitions
select batchmill.make_partitions()

-- name: late_batches
select id from batchmill.batches
where expires_at < batchmill.clock() and finished_at is null and cancelled_at is null
limit 100

-- name: expire
select batchmill.expire(batchmill.day_of(batchmill.clock()))

-- name: tidy
select batchmill.tidy()

-- name: tidy_limits
select batchmill.tidy_limits()

-- name: add_statistics
select batchmill.add_statistics()

-- name: held_snapshots
select pid, usename as user, application_name as application, state,
    extract(epoch from clock_timestamp() - xact_start) as seconds
from pg_stat_activity
where backend_xmin is not null and xact_start < clock_timestamp() - make_interval(secs => %(seconds)s::float8)
  and pid <> pg_backend_pid() and datname = current_database()
order by xact_start
