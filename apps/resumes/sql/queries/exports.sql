-- name: add_export
insert into resumes.exports (id, tenant, document_id, document_version, document_name, template, fingerprint,
    file_name, created_at)
values (%(id)s, batchmill.seen_tenant(), %(document)s, %(version)s, %(name)s, %(template)s, %(fingerprint)s,
    %(file_name)s, batchmill.clock())

-- name: share_export
-- The export that a request with this fingerprint shares: one that waits or runs, or a completed one that has not
-- expired. A completed one is kept longer from now on, as long as its batch can last.
with found as (
    select e.id, b.finished_at is not null as is_finished
    from resumes.exports e
    join batchmill.batches b on b.id = e.id
    where e.fingerprint = %(fingerprint)s and e.closed_at is null
        and (b.state in ('pending', 'processing') or b.state = 'completed'
            and coalesce(e.expires_at, b.finished_at + %(kept)s::interval) > batchmill.clock()
            and b.expires_at >= batchmill.clock() + %(kept)s::interval)
    order by e.created_at desc limit 1
)
update resumes.exports e
set expires_at = case when found.is_finished then batchmill.clock() + %(kept)s::interval else e.expires_at end
from found
-- A cleanup may have closed it since.
where e.id = found.id and e.closed_at is null
returning e.id

-- name: storage_left
select stored_bytes, storage_bytes from batchmill.quota_use(batchmill.seen_tenant())

-- name: list_exports
-- A page of exports, newest first, each with the state of its batch and of its only job, or with what the row has kept
-- of them. An export without both is left out: its batch was deleted behind the application's back.
select e.id, e.document_id, e.document_version, e.document_name, e.template, e.file_name, e.download_count,
    e.created_at, e.closed_at, s.status, coalesce(e.finished_at, b.finished_at) as finished_at,
    s.expires_at, s.expires_at <= batchmill.clock() or e.closed_at is not null as is_expired,
    coalesce(e.file_size, (j.result -> 'file' ->> 'size')::bigint) as file_size,
    coalesce(e.page_count, (j.result ->> 'page_count')::integer) as page_count,
    coalesce(e.warnings, j.result -> 'warnings') as warnings,
    coalesce(e.error, j.error) as error,
    (j.result -> 'file' ->> 'artifact')::uuid as artifact, b.last_event,
    case
        when s.status = 'completed' then 100
        -- A later attempt begins anew; what an earlier one has reported stays.
        else greatest((j.progress ->> 'percent')::float8, (
            select max((v.data ->> 'percent')::float8) from batchmill.events v
            where v.batch_id = e.id and v.expires_on = b.expires_on and v.type = 'job_progress'))
    end as progress
from resumes.exports e
left join batchmill.batches b on b.id = e.id
left join lateral (
    select state, progress, null::json as result, null::jsonb as error from batchmill.jobs where batch_id = b.id
    union all
    select state, progress, result, error from batchmill.finished
    where batch_id = b.id and expires_on = b.expires_on) j on true
cross join lateral (
    select case
            when e.status is not null then e.status
            when b.state in ('pending', 'processing') and j.state = 'running' then 'processing'
            when b.state in ('pending', 'processing') then 'pending'
            else b.state::text
        end as status,
        coalesce(e.expires_at, b.finished_at + %(kept)s::interval) as expires_at) s
where (b.id is not null or e.closed_at is not null)
    and (%(ids)s::uuid[] is null or e.id = any (%(ids)s))
    and (not %(listed)s::boolean or not e.is_deleted)
    and (%(status)s::text is null or s.status = %(status)s)
    and (%(before)s::timestamptz is null or (e.created_at, e.id) < (%(before)s, %(before_id)s::uuid))
order by e.created_at desc, e.id desc
limit %(count)s::integer

-- name: events_before
-- The events of an export before the one with this number.
select v.number, v.type, v.job_id, v.position, v.data, v.at
from batchmill.batches b
join batchmill.events v on v.batch_id = b.id and v.expires_on = b.expires_on
where b.id = %(id)s and v.number < %(number)s::integer
order by v.number

-- name: count_download
-- Returns the file only if it can be downloaded, so that nothing else is counted.
update resumes.exports e set download_count = download_count + 1
from batchmill.batches b
join batchmill.finished f on f.batch_id = b.id and f.expires_on = b.expires_on
where e.id = %(id)s and b.id = e.id and e.closed_at is null and b.state = 'completed'
    and coalesce(e.expires_at, b.finished_at + %(kept)s::interval) > batchmill.clock()
returning (f.result -> 'file' ->> 'artifact')::uuid as artifact
