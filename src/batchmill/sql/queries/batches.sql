-- name: batch
select id, tenant, task, state, total, running, completed, failed, cancelled, duplicates, last_event,
    generation, labels, created_at, started_at, finished_at, cancelled_at, expires_at
from batchmill.batches where id = %(batch)s

-- name: cancel_batch
select batchmill.cancel_batch(%(batch)s)

-- name: retry_batch
select batchmill.retry_batch(%(batch)s)

-- name: delete_batch
select batchmill.delete_batch(%(batch)s)

-- name: watch_batch
update batchmill.batches set watched_until = batchmill.clock() + interval '60 s'
where id = %(batch)s and (watched_until is null or watched_until < batchmill.clock() + interval '30 s')

-- name: events_after
select b.id as batch_id, once.before + e.place::integer as number, block.type, e.job_id, e.position,
    coalesce(once.data, e.data) as data, block.at
from batchmill.batches b
cross join lateral (
    (select * from batchmill.event_blocks
     where batch_id = b.id and expires_on = b.expires_on
       and last_number > %(after)s and last_number <= %(after)s + %(count)s)
    union all
    (select * from batchmill.event_blocks
     where batch_id = b.id and expires_on = b.expires_on and last_number > %(after)s + %(count)s
     order by last_number limit 1)
) block
cross join lateral (
    -- Not for each event: these arrays may have to be fetched from elsewhere.
    select block.last_number - cardinality(block.job_ids) as before,
        case cardinality(block.data) when 1 then block.data[1] end as data offset 0) once
cross join lateral unnest(block.job_ids, block.positions, block.data) with ordinality
    as e (job_id, position, data, place)
where b.id = %(batch)s
  and once.before + e.place > %(after)s and once.before + e.place <= %(after)s + %(count)s
order by number
