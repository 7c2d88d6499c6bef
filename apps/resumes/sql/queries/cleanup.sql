-- name: hold_expired
-- A row that is locked is being reused or deleted.
select e.id from resumes.exports e
join batchmill.batches b on b.id = e.id
where e.closed_at is null and coalesce(e.expires_at, b.finished_at + %(kept)s::interval) <= batchmill.clock()
limit %(most)s::integer for update of e skip locked

-- name: close_exports
-- Keeps in the rows what the batches have, because these are deleted next. Only exports that have ended are closed.
update resumes.exports e
set closed_at = batchmill.clock(), is_deleted = %(is_deleted)s, status = b.state::text, finished_at = b.finished_at,
    expires_at = coalesce(e.expires_at, b.finished_at + %(kept)s::interval),
    file_size = (f.result -> 'file' ->> 'size')::bigint, page_count = (f.result ->> 'page_count')::integer,
    warnings = f.result -> 'warnings',
    error = case when f.error is not null then
        jsonb_build_object('code', f.error ->> 'code', 'message', f.error ->> 'message') end
from batchmill.batches b
join batchmill.finished f on f.batch_id = b.id and f.expires_on = b.expires_on
where e.id = any (%(ids)s::uuid[]) and b.id = e.id and e.closed_at is null
returning e.id

-- name: hide_closed
update resumes.exports set is_deleted = true where id = %(id)s and closed_at is not null
returning id

-- name: closed_exports
-- Closed exports whose batch still exists.
select e.id from resumes.exports e join batchmill.batches b on b.id = e.id
where e.closed_at is not null and e.id > %(after)s::uuid order by e.id limit %(most)s::integer

-- name: forget_exports
-- Exports that were closed long ago, and those whose batch was deleted through the service of the engine.
delete from resumes.exports e
where e.closed_at < batchmill.clock() - %(remembered)s::interval
    or e.closed_at is null and e.created_at < batchmill.clock() - interval '1 day'
        and not exists (select from batchmill.batches b where b.id = e.id)

-- name: forget_batches
delete from resumes.export_batches b
where not exists (select from resumes.batch_exports m where m.batch_id = b.id)
