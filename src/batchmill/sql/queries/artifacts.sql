-- name: begin_input
select begun.id, begun.storage_key, grown.granted, grown.used, grown.most
from batchmill.begin_input(%(tenant)s, %(name)s, %(media_type)s, %(id)s) begun
cross join lateral batchmill.grow_artifact(
    begun.id, %(at_least)s::bigint, %(at_most)s::bigint, %(quota)s::bigint) grown

-- name: begin_output
select id, storage_key
from batchmill.begin_output(%(job)s::bigint, %(fence)s::bigint, %(name)s, %(media_type)s, %(id)s)
where id is not null

-- name: grow_artifact
select granted, used, most
from batchmill.grow_artifact(%(id)s, %(at_least)s::bigint, %(at_most)s::bigint, %(quota)s::bigint)

-- name: end_artifact
select id, tenant, kind, state, batch_id, job_id, name, media_type, size, sha256, storage_key, downloads,
    created_at, expires_at
from batchmill.end_artifact(%(id)s, %(size)s::bigint, %(sha256)s) where id is not null

-- name: give_up_artifact
select batchmill.give_up_artifact(%(id)s)

-- name: delete_artifact
select batchmill.delete_artifact(%(id)s)

-- name: forget_artifacts
select batchmill.forget_artifacts(%(ids)s)

-- name: count_download
select batchmill.count_download(%(id)s)

-- name: artifact
-- An attempt also sees the files that it has written itself.
select id, tenant, kind, state, batch_id, job_id, name, media_type, size, sha256, storage_key, downloads,
    created_at, expires_at
from batchmill.artifacts
where id = %(id)s and (state = 'kept' or state = 'stored' and fence = %(fence)s::bigint)
  and (%(tenant)s::text is null or tenant = %(tenant)s) and expires_at > batchmill.clock()

-- name: artifacts_of_batch
select id, tenant, kind, state, batch_id, job_id, name, media_type, size, sha256, storage_key, downloads,
    created_at, expires_at
from batchmill.artifacts
where id in (
    select id from batchmill.artifacts where batch_id = %(batch)s
    union
    select artifact_id from batchmill.artifact_uses where batch_id = %(batch)s)
  and state = 'kept' and expires_at > batchmill.clock() and id > %(after)s
  and (%(kind)s::text is null or kind = %(kind)s)
order by id limit %(count)s::bigint

-- name: artifacts_of_job
select id, tenant, kind, state, batch_id, job_id, name, media_type, size, sha256, storage_key, downloads,
    created_at, expires_at
from batchmill.artifacts
where job_id = %(job)s::bigint and state = 'kept' and expires_at > batchmill.clock()
order by created_at, id

-- name: artifacts_of_results
-- The files that completed jobs deliver: those of their last attempt, and the outputs that their results
-- name. Files of earlier stages are not included.
select f.position, a.id, a.tenant, a.kind, a.state, a.batch_id, a.job_id, a.name, a.media_type, a.size,
    a.sha256, a.storage_key, a.downloads, a.created_at, a.expires_at
from batchmill.finished f
cross join lateral (
    select * from batchmill.artifacts where job_id = f.id and fence = f.fence
    union
    select * from batchmill.artifacts
    where id = any (batchmill.named_artifacts(f.result::text)) and kind = 'output') a
where f.batch_id = %(batch)s and f.position = any (%(positions)s::integer[]) and f.state = 'completed'
  and f.expires_on = (select expires_on from batchmill.batches where id = %(batch)s)
  and a.tenant = f.tenant and a.state = 'kept' and a.expires_at > batchmill.clock()
order by f.position, a.created_at, a.id

-- name: artifacts_of_duplicates
-- The same for the jobs that duplicates name.
select d.position, a.id, a.tenant, a.kind, a.state, a.batch_id, a.job_id, a.name, a.media_type, a.size,
    a.sha256, a.storage_key, a.downloads, a.created_at, a.expires_at
from batchmill.duplicates d
cross join lateral (
    select * from batchmill.finished
    where id = d.original_id and expires_on = d.original_expires_on and state = 'completed') f
cross join lateral (
    select * from batchmill.artifacts where job_id = f.id and fence = f.fence
    union
    select * from batchmill.artifacts
    where id = any (batchmill.named_artifacts(f.result::text)) and kind = 'output') a
where d.batch_id = %(batch)s and d.position = any (%(positions)s::integer[])
  and a.tenant = d.tenant and a.state = 'kept' and a.expires_at > batchmill.clock()
order by d.position, a.created_at, a.id

-- name: apply_releases
select batchmill.apply_releases(%(most)s::integer)

-- name: collect_garbage
select id, storage_key from batchmill.collect_garbage(%(most)s::integer)

-- name: postpone_garbage
select batchmill.postpone_garbage(%(ids)s, %(seconds)s::float8)

-- name: signing_keys
select k.id, k.secret, extract(epoch from batchmill.clock())::float8 as now
from (select) one left join batchmill.signing_keys k on true
order by k.id desc

-- name: add_signing_key
select batchmill.add_signing_key(%(secret)s, %(keep)s::integer)
