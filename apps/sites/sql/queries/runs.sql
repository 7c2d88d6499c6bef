-- name: add_run
insert into sites.runs (id, tenant, url, site, repeats, created_at)
values (%(id)s, %(tenant)s, %(url)s, %(site)s, %(repeats)s, batchmill.clock())
on conflict do nothing

-- name: delete_run
delete from sites.runs where id = %(id)s

-- name: list_runs
-- A page of runs, newest first, each with the state of its batch and of its only job.
select r.id, r.url, r.site, r.repeats, r.created_at, b.state as batch_state, b.last_event, b.finished_at,
    j.task, j.state as job_state, j.progress, j.payload, j.result, j.error, j.run_at
from sites.runs r
join batchmill.batches b on b.id = r.id
cross join lateral (
    select task, state, progress, payload, null::json as result, null::jsonb as error, run_at
    from batchmill.jobs where batch_id = b.id
    union all
    select task, state, progress, payload, result, error, run_at
    from batchmill.finished where batch_id = b.id and expires_on = b.expires_on) j
where (%(ids)s::uuid[] is null or r.id = any (%(ids)s))
    and (%(site)s::text is null or r.site = %(site)s)
    and (%(states)s::text[] is null or b.state::text = any (%(states)s))
    and (%(before)s::timestamptz is null or (r.created_at, r.id) < (%(before)s, %(before_id)s::uuid))
order by r.created_at desc, r.id desc
limit %(count)s::integer

-- name: delete_expired_runs
-- Deletes some rows of runs whose batches have expired or were deleted, and returns them.
delete from sites.runs where id in (
    select r.id from sites.runs r
    where not exists (select from batchmill.batches b where b.id = r.id)
    order by r.created_at limit 1000)
returning id

-- name: phase_times
-- How long each phase waited and ran, for the phases that ended in the last minutes. A phase ends with the event that
-- moves the job on, completes it or lets it fail. Its last attempt counts. Before that, it waited since the event that
-- made it wait, or since the run was requested. A cancelled phase is counted, but has no times: it may not have begun.
with ended as (
    select r.created_at, e.batch_id, e.number, e.type, coalesce(e.data ->> 'from', e.data ->> 'task') as task, e.at
    from sites.runs r
    join batchmill.events e on e.batch_id = r.id
    where r.created_at > batchmill.clock() - make_interval(hours => 24)
      and e.type in ('job_stage', 'job_completed', 'job_failed', 'job_cancelled')
      and e.at > batchmill.clock() - make_interval(mins => %(minutes)s)
), timed as (
    select n.task, n.type, n.at, s.at as started_at, coalesce(w.at, n.created_at) as ready_at
    from ended n
    left join lateral (
        select number, at from batchmill.events s
        where n.type <> 'job_cancelled' and s.batch_id = n.batch_id and s.type = 'job_started' and s.number < n.number
        order by s.number desc limit 1) s on true
    left join lateral (
        select at from batchmill.events w
        where w.batch_id = n.batch_id and w.number < s.number and w.type not in ('job_progress', 'batch_started')
        order by w.number desc limit 1) w on true
)
select coalesce(task, '') as task,
    count(*) filter (where type in ('job_stage', 'job_completed')) as completed,
    count(*) filter (where type = 'job_failed') as failed,
    count(*) filter (where type = 'job_cancelled') as cancelled,
    percentile_disc(0.5) within group (order by extract(epoch from at - started_at)::float8) as run_p50,
    percentile_disc(0.95) within group (order by extract(epoch from at - started_at)::float8) as run_p95,
    percentile_disc(0.5) within group (order by extract(epoch from started_at - ready_at)::float8) as wait_p50,
    percentile_disc(0.95) within group (order by extract(epoch from started_at - ready_at)::float8) as wait_p95
from timed
group by grouping sets ((task), ())
