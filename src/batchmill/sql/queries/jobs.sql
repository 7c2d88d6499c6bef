-- name: submit
select batchmill.submit(%(task)s, cast(%(items)s as json), cast(%(options)s as jsonb))

-- name: submit_as_tenant
with acting as materialized (
    select set_config('role', 'batchmill_tenant', true), set_config('batchmill.tenant', %(acting_tenant)s, true))
select batchmill.submit(%(task)s, cast(%(items)s as json), cast(%(options)s as jsonb)) from acting

-- name: submit_one
select batchmill.submit_one(%(task)s, cast(%(payload)s as json), cast(%(options)s as jsonb))

-- name: submit_one_as_tenant
with acting as materialized (
    select set_config('role', 'batchmill_tenant', true), set_config('batchmill.tenant', %(acting_tenant)s, true))
select batchmill.submit_one(%(task)s, cast(%(payload)s as json), cast(%(options)s as jsonb)) from acting

-- name: hold_request
select batchmill.hold_request(%(tenant)s, %(key)s) as held

-- name: begin
begin

-- name: begin_submit
savepoint batchmill_submit

-- name: undo_submit
rollback to savepoint batchmill_submit

-- name: end_submit
release savepoint batchmill_submit

-- name: enqueue
select batchmill.enqueue(%(task)s, cast(%(payload)s as json), cast(%(options)s as jsonb))

-- name: enqueue_as_tenant
with acting as materialized (
    select set_config('role', 'batchmill_tenant', true), set_config('batchmill.tenant', %(acting_tenant)s, true))
select batchmill.enqueue(%(task)s, cast(%(payload)s as json), cast(%(options)s as jsonb)) from acting

-- name: check_job
select batchmill.check_job(t, json_build_object('payload', %(payload)s::json, 'key', %(key)s::text))
from batchmill.known_task(%(task)s, null) t

-- name: claim_jobs
select batchmill.claim_jobs(%(worker)s::bigint, %(tasks)s, %(wants)s::integer[], %(want)s::integer,
    %(prefetch)s::integer, cast(%(since)s as xid8), %(last_tenants)s::text[], %(last_tenant)s,
    %(seed)s::bigint)

-- name: finish
select batchmill.finish(%(ids)s::bigint[], %(fences)s::bigint[], %(kinds)s::text[],
    cast(%(details)s as json), cast(%(progress)s as json), %(lanes)s::bigint[])

-- name: finish_and_claim
select batchmill.finish_and_claim(%(ids)s::bigint[], %(fences)s::bigint[], %(kinds)s::text[],
    cast(%(details)s as json), cast(%(progress)s as json), %(lanes)s::bigint[],
    %(worker)s::bigint, %(tasks)s, %(wants)s::integer[], %(want)s::integer, %(prefetch)s::integer,
    cast(%(since)s as xid8), %(last_tenants)s::text[], %(last_tenant)s, %(seed)s::bigint)

-- name: finish_with_records
select batchmill.finish(%(ids)s::bigint[], %(fences)s::bigint[], %(kinds)s::text[],
    cast(%(details)s as json), cast(%(progress)s as json), %(lanes)s::bigint[], cast(%(records)s as json))

-- name: finish_and_claim_with_records
select batchmill.finish_and_claim(%(ids)s::bigint[], %(fences)s::bigint[], %(kinds)s::text[],
    cast(%(details)s as json), cast(%(progress)s as json), %(lanes)s::bigint[], cast(%(records)s as json),
    %(worker)s::bigint, %(tasks)s, %(wants)s::integer[], %(want)s::integer, %(prefetch)s::integer,
    cast(%(since)s as xid8), %(last_tenants)s::text[], %(last_tenant)s, %(seed)s::bigint)

-- name: report_progress
select batchmill.report_progress(cast(%(reports)s as json))

-- name: save_checkpoint
select batchmill.save_checkpoint(%(job)s::bigint, %(fence)s::bigint, %(name)s, cast(%(value)s as json))

-- name: retry_job
select batchmill.retry_job(%(job)s::bigint)

-- name: cancel_job
select batchmill.cancel_job(%(job)s::bigint)

-- name: job
-- Payload and result are text, because few callers need them as values.
select id, batch_id, position, task, tenant, key, state, priority, run_at, attempt, snoozes, worker_id,
    created_at, started_at, null::timestamptz as finished_at, false as cached, payload::text as payload,
    null::text as result, null::jsonb as error, progress, labels, attempts
from batchmill.jobs where id = %(job)s::bigint
union all
select id, batch_id, position, task, tenant, key, state, priority, run_at, attempt, snoozes, worker_id,
    created_at, started_at, finished_at, cached, payload::text, result::text, error, progress, labels, attempts
from batchmill.finished where id = %(job)s::bigint

-- name: stay_briefly
select set_config('idle_in_transaction_session_timeout', %(seconds)s || 's', true)

-- name: job_state
select state from batchmill.finished where id = %(job)s::bigint

-- name: watch_job
select batchmill.watch_job(%(job)s::bigint)

-- name: read_in_order
-- Leaves the planner one plan: an index scan. If the statistics of a table that has grown are outdated, it
-- would otherwise read and sort all rows.
select set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
    set_config('enable_sort', 'off', true), set_config('jit', 'off', true)

-- name: jobs_of_batch
with page as materialized (
    select batchmill.page_end(%(batch)s, %(after)s::bigint, %(count)s::bigint, %(bytes)s::bigint) as upto)
select * from (
    select id, batch_id, position, task, tenant, key, state, priority, run_at, attempt, snoozes, worker_id,
        created_at, started_at, null::timestamptz as finished_at, false as cached, payload,
        null::json as result, null::jsonb as error, progress, labels, attempts
    from batchmill.jobs
    where batch_id = %(batch)s and position > %(after)s::bigint and position <= (select upto from page)
    union all
    select id, batch_id, position, task, tenant, key, state, priority, run_at, attempt, snoozes, worker_id,
        created_at, started_at, finished_at, cached, payload, result, error, progress, labels, attempts
    from batchmill.finished
    where batch_id = %(batch)s and position > %(after)s::bigint and position <= (select upto from page)
      and expires_on = (select expires_on from batchmill.batches where id = %(batch)s)
) jobs order by position

-- name: ended_of_batch
-- A page of ended jobs. Also returns the last position of the page, and whether any job after it has ended.
with page as materialized (
    select batchmill.page_end(%(batch)s, %(after)s::bigint, %(count)s::bigint, %(bytes)s::bigint, true)
        as upto),
rest as materialized (
    select batchmill.page_end(%(batch)s, upto, 1, 0, true) is not null as has_more from page)
select (select upto from page), (select has_more from rest), id, position, state,
    case state when 'completed' then coalesce(result, 'null')::text end as result,
    coalesce(error ->> 'code', '') as code, coalesce(error ->> 'message', '') as message
from batchmill.finished
where batch_id = %(batch)s and position > %(after)s::bigint and position <= (select upto from page)
  and expires_on = (select expires_on from batchmill.batches where id = %(batch)s)
order by position
