-- name: hold_count
-- Requests of one user that add documents take turns, so that the limit is exact.
select pg_advisory_xact_lock(hashtextextended('resumes.documents ' || batchmill.seen_tenant(), 0))

-- name: add_document
-- Returns no row if the user has too many documents. The caller holds the count.
insert into resumes.documents (id, tenant, version, name, label, content, created_at, updated_at)
select gen_random_uuid(), batchmill.seen_tenant(), 1, %(name)s, %(label)s, %(content)s::json, now.at, now.at
from (select batchmill.clock() as at) now
where (select count(*) from resumes.documents) < %(most)s::integer
returning id, version, name, label, created_at, updated_at

-- name: change_document
-- Returns no row unless the version is the current one.
update resumes.documents
set version = version + 1, name = %(name)s, label = %(label)s, content = %(content)s::json, updated_at = batchmill.clock()
where id = %(id)s and deleted_at is null and version = %(version)s::bigint
returning id, version, name, label, created_at, updated_at

-- name: get_document
select id, version, name, label, created_at, updated_at, content::text from resumes.documents
where id = %(id)s and deleted_at is null

-- name: list_documents
select id, version, name, label, created_at, updated_at from resumes.documents
where deleted_at is null
    and (%(before)s::timestamptz is null or (created_at, id) < (%(before)s, %(before_id)s::uuid))
order by created_at desc, id desc
limit %(count)s::integer

-- name: hold_documents
-- In the order of their ids, so that two requests cannot wait for each other. While a document is locked, no other
-- request can begin an export of it.
select id, version, name, content::text from resumes.documents
where id = any (%(ids)s::uuid[]) and deleted_at is null
order by id for update

-- name: begin_deletion
-- Waits for requests that have locked the document. Also finds a document whose deletion was interrupted.
update resumes.documents set deleted_at = coalesce(deleted_at, batchmill.clock()) where id = %(id)s
returning id

-- name: delete_document
delete from resumes.documents where id = %(id)s and deleted_at is not null

-- name: interrupted_deletions
select id from resumes.documents where deleted_at is not null order by id limit 1000

-- name: waiting_exports
-- The exports of a document that have not started, or wait for their next attempt.
select e.id from resumes.exports e
join batchmill.jobs j on j.batch_id = e.id
where e.document_id = %(document)s and j.state in ('ready', 'scheduled')
order by e.id
