-- name: batch
select id, tenant, task, state, total, running, completed, failed, cancelled, duplicates, last_event,
    generation, labels, created_at, started_at, finished_at, cancelled_at, expires_at
from batchmill.batches where id = %(batch)s

-- name: begin_cancel
select batchmill.begin_cancel(%(batch)s)

-- name: cancel_step
select cancelled, upto from batchmill.cancel_step(%(batch)s, %(after)s::bigint, %(most)s::bigint)

-- name: half_cancelled
-- Cancelled batches whose caller has not ended the waiting jobs for a minute.
select id from batchmill.batches b
where cancelled_at < batchmill.clock() - interval '1 minute' and finished_at is null
  and batchmill.waiting_jobs(b) > 0
order by cancelled_at limit 100

-- name: retry_batch
select batchmill.retry_batch(%(batch)s)

-- name: delete_batch
select batchmill.delete_batch(%(batch)s)

-- name: watch_batch
select batchmill.watch_batch(%(batch)s)

-- name: last_events
select id, last_event from batchmill.batches where id = any (%(batches)s)

-- name: events_after
-- Also returns the state of the batch; without events, the result is one row with only that.
select b.last_event, b.finished_at is not null as is_finished, b.id as batch_id,
    e.number, e.type, e.job_id, e.position, e.data, e.at
from batchmill.batches b
cross join (select %(after)s::bigint as after, %(after)s::bigint + %(count)s::bigint as upto) page
left join lateral (
    select once.before + e.place::integer as number, block.type, e.job_id, e.position,
        coalesce(once.data, e.data) as data, block.at
    from (
        (select * from batchmill.event_blocks
         where batch_id = b.id and expires_on = b.expires_on
           and last_number > page.after and last_number <= page.upto)
        union all
        (select * from batchmill.event_blocks
         where batch_id = b.id and expires_on = b.expires_on and last_number > page.upto
         order by last_number limit 1)
    ) block
    cross join lateral (
        -- Computed once per block, not per event: these arrays may be stored out of line.
        select block.last_number - cardinality(block.job_ids) as before,
            case cardinality(block.data) when 1 then block.data[1] end as data offset 0) once
    cross join lateral unnest(block.job_ids, block.positions, block.data) with ordinality
        as e (job_id, position, data, place)
    where once.before + e.place > page.after and once.before + e.place <= page.upto
) e on true
where b.id = %(batch)s
order by e.number

-- name: state_of_batch
-- One statement, so the jobs match the event number `number` exactly.
select b.id as batch_id, b.last_event as number, batchmill.clock() as at, json_build_object(
    'batch', (select row_to_json(shown) from (
        select b.id, b.tenant, b.task, b.state, b.total, b.running, b.completed, b.failed, b.cancelled,
            b.duplicates, b.last_event, b.generation, b.labels, b.created_at, b.started_at,
            b.finished_at, b.cancelled_at, b.expires_at) shown),
    'jobs', (select coalesce(json_agg(shown), '[]') from (
        select id, position, task, state, attempt, progress, error ->> 'code' as code,
            error ->> 'message' as message
        from (
            (select id, position, task, state, attempt, progress, null::jsonb as error
             from batchmill.jobs where batch_id = b.id
             order by position limit %(most)s::bigint)
            union all
            (select id, position, task, state, attempt, progress, error
             from batchmill.finished where batch_id = b.id and expires_on = b.expires_on
             order by position limit %(most)s::bigint)
        ) jobs order by position limit %(most)s::bigint) shown),
    'duplicates', (select coalesce(json_agg(shown), '[]') from (
        select position, job_id, batch_id, state
        from batchmill.duplicates_of(b.id, -1, %(most)s::bigint, null)) shown),
    'truncated', greatest(b.total, b.duplicates) > %(most)s::bigint) as data
from batchmill.batches b where b.id = %(batch)s

-- name: duplicates_of_batch
-- Results are text, because few callers need them as values.
select position, job_id, batch_id, task, state, result::text as result, error
from batchmill.duplicates_of(%(batch)s, %(after)s::bigint, %(count)s::bigint, %(bytes)s::bigint)
