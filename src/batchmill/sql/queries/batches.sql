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
select e.batch_id, e.number, e.type, e.job_id, e.position, e.data, e.at
from batchmill.batches b
join batchmill.events e on e.batch_id = b.id and e.expires_on = b.expires_on
where b.id = %(batch)s and e.number > %(after)s and e.number <= %(after)s + %(count)s
order by e.number limit %(count)s
