-- name: register_task
select batchmill.register_task(%(name)s, %(retry)s::jsonb, %(keyed)s, %(payload_limit)s::integer,
    %(limits)s::jsonb, %(entry)s, %(priority)s::integer, %(pipeline)s::jsonb)

-- name: set_priority
select batchmill.set_priority(%(task)s, %(priority)s::integer)

-- name: register_worker
select batchmill.register_worker(%(name)s, %(version)s, %(tasks)s, %(concurrency)s::integer, %(lease)s::float8)

-- name: renew_lease
select batchmill.renew_lease(%(worker)s::bigint, %(lease)s::float8)

-- name: report_slots
select batchmill.report_slots(%(worker)s::bigint, %(pools)s::jsonb, %(slots)s::jsonb)

-- name: set_worker_state
update batchmill.workers set state = %(state)s, idle = false
where id = %(worker)s::bigint and state in ('live', 'draining')

-- name: jobs_of_worker
select id, fence, lane_id as lane from batchmill.running_jobs() where worker_id = %(worker)s::bigint

-- name: listening_key
select batchmill.listening_key()
