-- name: add_batch
insert into resumes.export_batches (id, tenant, created_at, total)
values (gen_random_uuid(), batchmill.seen_tenant(), batchmill.clock(), %(total)s)
returning id

-- name: add_to_batch
insert into resumes.batch_exports (batch_id, position, tenant, export_id)
select %(batch)s, place - 1, batchmill.seen_tenant(), export
from unnest(%(exports)s::uuid[]) with ordinality as given (export, place)

-- name: list_batches
-- A page of batches, newest first, with the exports at their positions.
select b.id, b.created_at, b.total, array(
    select m.export_id from resumes.batch_exports m where m.batch_id = b.id order by m.position) as exports
from resumes.export_batches b
where (%(id)s::uuid is null or b.id = %(id)s)
    and (%(before)s::timestamptz is null or (b.created_at, b.id) < (%(before)s, %(before_id)s::uuid))
order by b.created_at desc, b.id desc
limit %(count)s::integer
