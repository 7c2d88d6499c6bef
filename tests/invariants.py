"""Invariants that hold in the database at every moment between two transactions.

Each invariant is a query that returns one readable line for each violation. All of them run in one
statement, so that they see the same snapshot while workers are running.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

from batchmill.domain.job import FINAL
from batchmill.domain.outcome import STATE_AFTER, TRANSITIONS

CHANGES = ", ".join(f"('{a}', '{b}')" for a, after in TRANSITIONS.items() for b in sorted(after))
STATES = ", ".join(f"('{event}', '{state}')" for event, state in STATE_AFTER.items())
ENDS = ", ".join(f"'{event}'" for event, state in STATE_AFTER.items() if state in FINAL)

# `kept` has the batches whose history has not expired. `every_job` has live and finished jobs.
# `job_history` has the state changes of each job in order: progress events are left out, because
# they do not change the state, and a manual retry makes a job ready at once. `batch_events`
# summarises the events of each batch.
#
# PostgreSQL materializes a CTE that is used twice, and it has no index. A correlated subquery would
# read all of it for each row, so group it first and join the groups.
SHARED = f"""
with kept as (
    select * from batchmill.batches where expires_on >= batchmill.day_of(batchmill.clock())
), every_job as (
    select id, batch_id, task, tenant, state, attempt, fence, payload, true as live
    from batchmill.jobs
    union all
    select id, batch_id, task, tenant, state, attempt, fence, payload, false
    from batchmill.finished
), job_events as (
    select e.batch_id, e.job_id, e.number, e.type,
        coalesce((e.data ->> 'manual')::boolean, false) as manual,
        coalesce((e.data ->> 'cached')::boolean, false) as cached,
        (e.data ->> 'attempt')::integer as attempt, e.data ->> 'task' as task,
        case when (e.data ->> 'manual')::boolean then 'ready' else s.state end as state
    from kept b join batchmill.events e on e.batch_id = b.id
    left join (values {STATES}) as s (event, state) on s.event = e.type
    where e.job_id is not null
), job_history as (
    select *, lag(state) over per_job as before, lag(type) over per_job as event_before,
        lag(manual) over per_job as manual_before,
        lag(attempt) over per_job as attempt_before,
        lag(attempt, 2) over per_job as attempt_before_that,
        lead(number) over per_job as number_after
    from job_events where type <> 'job_progress'
    window per_job as (partition by batch_id, job_id order by number)
), batch_events as (
    select batch_id, count(*) as events, count(distinct number) as numbers, min(number) as first,
        max(number) as last,
        count(*) filter (where type in ('batch_completed', 'batch_cancelled')) as finishes,
        max(number) filter (where type in ('batch_completed', 'batch_cancelled')) as finish,
        count(*) filter (where type = 'batch_started') as starts,
        min(number) filter (where type = 'batch_started') as start,
        min(number) filter (where type = 'job_started') as first_job
    from batchmill.events group by batch_id
), running_under as (
    select n.name, count(*) as jobs
    from batchmill.jobs j
    cross join lateral batchmill.limit_names(j.task, j.tenant, j.batch_id, j.key) n
    where j.state = 'running' group by n.name
)
"""

INVARIANTS = {
    "the counters of a batch match the states of its jobs": """
        select format('batch %s counts %s, its jobs are %s', b.id,
            (b.total, b.running, b.completed, b.failed, b.cancelled),
            (j.total, j.running, j.completed, j.failed, j.cancelled))
        from kept b left join (
            select batch_id, count(*) as total, count(*) filter (where state = 'running') as running,
                count(*) filter (where state = 'completed') as completed,
                count(*) filter (where state = 'failed') as failed,
                count(*) filter (where state = 'cancelled') as cancelled
            from every_job group by batch_id) n on n.batch_id = b.id
        cross join lateral (values (coalesce(n.total, 0), coalesce(n.running, 0),
            coalesce(n.completed, 0), coalesce(n.failed, 0), coalesce(n.cancelled, 0)))
            as j (total, running, completed, failed, cancelled)
        where (b.total, b.running, b.completed, b.failed, b.cancelled)
            <> (j.total, j.running, j.completed, j.failed, j.cancelled)""",
    "a batch is finished exactly when all its jobs have ended": """
        select format('batch %s: finished at %s, %s of %s jobs live', b.id, b.finished_at,
            count(j.id), b.total)
        from batchmill.batches b left join batchmill.jobs j on j.batch_id = b.id
        group by b.id having (b.finished_at is null) <> (count(j.id) > 0)""",
    "the state of a batch follows from its counters": """
        select format('batch %s is %s: %s of %s completed, %s cancelled', id, state, completed,
            total, cancelled)
        from kept
        where state::text <> case
            when cancelled_at is not null then 'cancelled'
            when finished_at is null and started_at is null and failed + completed = 0 then 'pending'
            when finished_at is null then 'processing'
            when completed = total then 'completed'
            when cancelled = total then 'cancelled'
            when completed > 0 then 'partial'
            else 'failed' end""",
    "a batch has one finish event in each finished generation, as its last event": """
        select format('batch %s: %s finish events in generation %s, the last is %s of %s', b.id,
            coalesce(e.finishes, 0), b.generation, e.finish, b.last_event)
        from kept b left join batch_events e on e.batch_id = b.id
        where coalesce(e.finishes, 0) <> b.generation - (b.finished_at is null)::integer
            or b.finished_at is not null and e.finish is distinct from b.last_event""",
    "a batch submits its callback once in each finished generation": """
        select format('batch %s: %s callbacks in generation %s, finished at %s', b.id,
            coalesce(c.calls, 0), b.generation, b.finished_at)
        from kept b left join (
            select task, payload ->> 'batch_id' as of_batch, count(*) as calls from every_job
            where batch_id is null and task in (select on_finish from kept)
            group by task, of_batch) c on c.task = b.on_finish and c.of_batch = b.id::text
        where b.on_finish is not null
          and coalesce(c.calls, 0) <> b.generation - (b.finished_at is null)::integer""",
    "each notification of a batch is sent once in each finished generation": """
        select format('notification %s of batch %s: sent for generation %s of %s', n.id, b.id,
            n.told_generation, b.generation)
        from kept b join batchmill.notifications n on n.batch_id = b.id
        where b.finished_at is not null and n.told_generation <> b.generation
           or n.told_generation > b.generation
        union all
        select format('notification %s has %s jobs for generation %s', payload ->> 'notification_id',
            count(*), payload -> 'batch' ->> 'generation')
        from every_job where task in ('batchmill.webhook', 'batchmill.email')
        group by payload ->> 'notification_id', payload -> 'batch' ->> 'generation'
        having count(*) > 1""",
    "a batch has one start event, before the first start of a job": """
        select format('batch %s, started at %s: %s start events, number %s; first job at number %s',
            b.id, b.started_at, coalesce(e.starts, 0), e.start, e.first_job)
        from kept b left join batch_events e on e.batch_id = b.id
        where coalesce(e.starts, 0) <> (b.started_at is not null)::integer
            or e.first_job < e.start""",
    "the events of a batch are numbered from 1 without gaps": """
        select format('batch %s: %s events from %s to %s, the last should be %s', b.id,
            coalesce(e.events, 0), e.first, e.last, b.last_event)
        from kept b left join batch_events e on e.batch_id = b.id
        where (coalesce(e.numbers, 0), coalesce(e.events, 0)) <> (b.last_event, b.last_event)
            or b.last_event > 0 and (e.first, e.last) <> (1, b.last_event)""",
    "a job ends once, and once more after each manual retry": f"""
        select format('job %s is %s after %s ends and %s retries', j.id, j.state,
            coalesce(s.ends, 0), coalesce(s.retries, 0))
        from kept b join every_job j on j.batch_id = b.id
        left join (
            select batch_id, job_id, count(*) filter (where type in ({ENDS})) as ends,
                count(*) filter (where manual) as retries
            from job_history group by batch_id, job_id) s
            on s.batch_id = j.batch_id and s.job_id = j.id
        where coalesce(s.ends, 0) <> coalesce(s.retries, 0) + (not j.live)::integer""",
    "every change of a job's state is allowed": f"""
        select format('job %s went from %s to %s with event %s (%s)', job_id,
            coalesce(before, 'the start'), state, number, type)
        from job_history
        where (coalesce(before, 'ready'), state) not in ({CHANGES})
          and not (before is null and cached and state = 'completed')
          or manual <> (before is not distinct from 'failed')""",
    "only running jobs have progress events": """
        select format('job %s has a progress event while %s: number %s', e.job_id, s.state, e.number)
        from job_events e left join job_history s on s.batch_id = e.batch_id and s.job_id = e.job_id
            and s.number < e.number and (s.number_after is null or s.number_after >= e.number)
        where e.type = 'job_progress' and s.state is distinct from 'running'""",
    "a job's state matches its last event": """
        select format('job %s is %s, its last event says %s', j.id, j.state, s.state)
        from kept b join every_job j on j.batch_id = b.id
        left join job_history s on s.batch_id = j.batch_id and s.job_id = j.id
            and s.number_after is null
        where case when s.state is null then j.state not in ('ready', 'scheduled')
              else j.state::text <> s.state end""",
    "attempts are numbered from 1, and only failed attempts count": """
        select format('job %s began attempt %s after %s (event %s)', job_id, attempt,
            coalesce(event_before, 'nothing'), number)
        from job_history
        where type = 'job_started' and attempt <> case
            when event_before is null or event_before = 'job_stage' or manual_before then 1
            when event_before = 'job_retrying' then attempt_before + 1
            else attempt_before_that end""",
    "no job has more attempts than its task allows": """
        select format('job %s of %s is at attempt %s of %s', j.id, j.task, j.attempt,
            t.retry ->> 'attempts')
        from every_job j join batchmill.tasks t on t.name = j.task
        where j.attempt > (t.retry ->> 'attempts')::integer""",
    "a running job has an attempt, a fence and a worker, a waiting job has no fence or worker": """
        select format('job %s is %s: worker %s, attempt %s, fence %s, started at %s', id, state,
            worker_id, attempt, fence, started_at)
        from batchmill.jobs
        where case when state = 'running'
            then attempt < 1 or num_nulls(fence, worker_id, started_at) > 0
            else num_nonnulls(fence, worker_id, started_at) > 0 end""",
    "no job starts before its run_at": """
        select format('job %s started at %s, before %s', id, started_at, run_at)
        from (select id, started_at, run_at from batchmill.jobs where state = 'running'
            union all select id, started_at, run_at from batchmill.finished) j
        where started_at < run_at""",
    "a job is stored once, either live or finished": """
        select format('job %s is stored %s times: %s', id, count(*), array_agg(state))
        from every_job group by id having count(*) > 1
        union all
        select format('job %s is live and %s', id, state) from batchmill.jobs
        where state in ('completed', 'failed', 'cancelled')
        union all
        select format('job %s is finished and %s', id, state) from batchmill.finished
        where state not in ('completed', 'failed', 'cancelled')""",
    "a cancelled job never completes": """
        select format('job %s was cancelled but still waits', id) from batchmill.jobs
        where cancelled_at is not null and state <> 'running'
        union all
        select format('job %s of cancelled batch %s runs without a cancel mark', j.id, b.id)
        from batchmill.jobs j join kept b on b.id = j.batch_id
        where b.cancelled_at is not null and j.state = 'running' and j.cancelled_at is null
        union all
        select format('jobs of cancelled batch %s may start in lane %s', b.id, l.id)
        from batchmill.lanes l join kept b on b.id = l.batch_id
        where b.cancelled_at is not null and l.ready_at is not null
        union all
        select format('job %s completed after batch %s was cancelled', f.id, b.id)
        from batchmill.finished f join kept b on b.id = f.batch_id
        where b.cancelled_at is not null and f.state <> 'cancelled'
          and f.finished_at > b.cancelled_at""",
    "a fence belongs to one attempt": """
        select format('fence %s is used by jobs %s', fence, array_agg(id))
        from every_job where fence is not null group by fence having count(*) > 1
        union all
        select format('job %s has fence %s, but the last one issued is %s', id, fence, last_value)
        from every_job cross join batchmill.fences where fence > last_value""",
    "a deduplication key belongs to at most one live job": """
        select format('jobs %s of %s share the key %s', array_agg(id), tenant, dedup_key)
        from batchmill.jobs where dedup_key is not null
        group by tenant, dedup_key having count(*) > 1""",
    "every item of a batch is a job or a duplicate, at its own position": """
        select format('batch %s has %s jobs and %s duplicates at %s positions up to %s', b.id,
            b.total, b.duplicates, coalesce(i.positions, 0), i.last)
        from kept b left join (
            select batch_id, count(distinct position) as positions, max(position) as last from (
                select batch_id, position from batchmill.jobs
                union all select batch_id, position from batchmill.finished
                union all select batch_id, position from batchmill.duplicates) items
            group by batch_id) i on i.batch_id = b.id
        where (coalesce(i.positions, 0), coalesce(i.last, -1))
            <> (b.total + b.duplicates, b.total + b.duplicates - 1)""",
    "one tenant owns a batch, its jobs, duplicates, events, lanes, usage and artifacts": """
        select format('%s %s belongs to %s, batch %s to %s', what, o.id, o.tenant, b.id, b.tenant)
        from batchmill.batches b join (
            select 'job' as what, id::text, batch_id, tenant from every_job
            union all select 'duplicate', position::text, batch_id, tenant from batchmill.duplicates
            union all select 'original', d.original_id::text, d.batch_id, j.tenant
            from batchmill.duplicates d join every_job j on j.id = d.original_id
            union all select 'event', number::text, batch_id, tenant from batchmill.events
            union all select 'lane', id::text, batch_id, tenant from batchmill.lanes
            union all select 'usage', name, batch_id, tenant from batchmill.batch_usage
            union all select 'artifact', id::text, batch_id, tenant from batchmill.artifacts
            union all select 'use of', u.artifact_id::text, u.batch_id, a.tenant
            from batchmill.artifact_uses u join batchmill.artifacts a on a.id = u.artifact_id) o
            on o.batch_id = b.id and o.tenant <> b.tenant
        union all
        select format('artifact %s belongs to %s, job %s to %s', a.id, a.tenant, j.id, j.tenant)
        from batchmill.artifacts a join every_job j on j.id = a.job_id and j.tenant <> a.tenant""",
    "an artifact that waits for the end of its attempt belongs to the running attempt": """
        select format('artifact %s of job %s is stored, but its fence %s is not the newest', a.id,
            a.job_id, a.fence)
        from batchmill.artifacts a left join batchmill.jobs j on j.id = a.job_id
        where a.state = 'stored' and j.fence is distinct from a.fence""",
    "results and payloads do not name artifacts that may still be discarded": """
        select format('the result of job %s names artifact %s, which is %s', f.id, a.id, a.state)
        from batchmill.finished f
        cross join lateral unnest(batchmill.named_artifacts(f.result::text)) named
        join batchmill.artifacts a on a.id = named
        -- Avoids calling the function for jobs that name no artifact.
        where f.result::text like '%"artifact"%' and a.state in ('writing', 'stored')
        union all
        select format('the payload of job %s names artifact %s, which is %s', j.id, a.id, a.state)
        from batchmill.jobs j
        cross join lateral unnest(batchmill.named_artifacts(j.payload::text)) named
        join batchmill.artifacts a on a.id = named
        where j.payload::text like '%"artifact"%' and a.state <> 'kept'""",
    "the files of a batch do not expire before the batch": """
        select format('artifact %s expires at %s, batch %s at %s', a.id, a.expires_at, b.id,
            b.expires_at)
        from batchmill.artifacts a
        join batchmill.artifact_uses u on u.artifact_id = a.id
        join batchmill.batches b on b.id = u.batch_id
        where a.expires_at < b.expires_at""",
    "only an item with a job of its own needs a file": """
        select format('item %s of batch %s has no job but needs artifact %s', d.position,
            d.batch_id, u.artifact_id)
        from batchmill.artifact_uses u join batchmill.duplicates d on d.batch_id = u.batch_id
        where u.items @> d.position""",
    "the uses of files are deleted with their batch": """
        select format('batch %s uses artifact %s', u.batch_id, u.artifact_id)
        from batchmill.artifact_uses u left join batchmill.batches b on b.id = u.batch_id
        where u.batch_id is not null and b.id is null""",
    "the stored bytes of a tenant match its artifacts": """
        select format('%s has stored %s bytes, its artifacts have %s', tenant, u.bytes, a.bytes)
        from (select tenant, stored_bytes as bytes from batchmill.usage) u
        full join (
            select tenant, sum(size) as bytes from batchmill.artifacts group by tenant) a
            using (tenant)
        where coalesce(u.bytes, 0) <> coalesce(a.bytes, 0)""",
    "the stored bytes of a group match its tenants": """
        select format('%s has stored %s bytes, its tenants have %s', name, g.bytes, u.bytes)
        from (select name, stored_bytes as bytes from batchmill.storage_groups) g
        full join (
            select batchmill.group_of(tenant) as name, sum(stored_bytes) as bytes
            from batchmill.usage group by 1) u
            using (name)
        where coalesce(g.bytes, 0) <> coalesce(u.bytes, 0)""",
    "the usage of a batch is deleted with the batch": """
        select format('%s of %s is stored for batch %s', u.name, u.task, u.batch_id)
        from batchmill.batch_usage u left join batchmill.batches b on b.id = u.batch_id
        where b.id is null""",
    "the usage of the days includes the usage of the batches": """
        select format('batches of %s used %s %s in %s, the days have %s', tenant, b.amount, name,
            task, d.amount)
        from (
            select tenant, task, name, sum(amount) as amount from batchmill.batch_usage
            group by tenant, task, name) b
        left join (
            select tenant, task, name, sum(amount) as amount from batchmill.daily_usage
            group by tenant, task, name) d using (tenant, task, name)
        where b.amount > coalesce(d.amount, 0)""",
    "a job is in the lane of its task, tenant, batch and key": """
        select format('job %s of %s is in lane %s of %s', j.id,
            (j.task, j.tenant, j.batch_id, j.key), l.id, (l.task, l.tenant, l.batch_id, l.key))
        from batchmill.jobs j left join batchmill.lanes l on l.id = j.lane_id
        where j.lane_id is not null and (j.task, j.tenant, j.batch_id, j.key)
            is distinct from (l.task, l.tenant, l.batch_id, l.key)
        union all
        select format('job %s has no lane', id) from batchmill.jobs
        where lane_id is null and (batch_id is not null or submitted_by is null
            or state not in ('ready', 'scheduled'))""",
    "a lane counts its running jobs": """
        select format('lane %s (%s) counts %s running, there are %s', l.id, l.task, l.running,
            count(j.id))
        from batchmill.lanes l
        left join batchmill.jobs j on j.lane_id = l.id and j.state = 'running'
        group by l.id having l.running <> count(j.id)""",
    "a limit counts the running jobs that it applies to": """
        select format('limit %s counts %s running, there are %s', m.name, m.running,
            coalesce(r.jobs, 0))
        from batchmill.limits m left join running_under r on r.name = m.name
        where m.running <> coalesce(r.jobs, 0)""",
    "a lane is ready by the time its first job is due": """
        select format('lane %s (%s) is ready at %s, its first job is due at %s', l.id, l.task,
            l.ready_at, j.due)
        from batchmill.lanes l join (
            select lane_id,
                min(case state when 'ready' then clock else greatest(run_at, clock) end) as due
            from batchmill.jobs cross join batchmill.clock()
            where state in ('ready', 'scheduled') group by lane_id) j on j.lane_id = l.id
        left join batchmill.batches b on b.id = l.batch_id
        where b.cancelled_at is null
          and (l.ready_at > j.due or l.ready_at is null and j.due is not null)""",
    "no ready job is before the head of its lane": """
        select format('job %s (rank %s) is before the head (%s, %s) of lane %s', j.id,
            -j.priority, l.head_rank, l.head_id, l.id)
        from batchmill.jobs j join batchmill.lanes l on l.id = j.lane_id
        where j.state = 'ready' and (-j.priority, j.id) <= (l.head_rank, l.head_id)""",
    "a limit that blocks a parked lane has its parked flag set": """
        select format('lane %s (%s) is parked behind %s', l.id, l.task,
            coalesce(m.name, 'nothing'))
        from batchmill.lanes l left join batchmill.limits m on m.id = l.blocked_by
        where l.blocked_by is not null and m.parked is not true""",
    "a limit declares the values of its template": """
        select format('limit %s declares %s, its template %s has %s', m.name,
            (m.declared_slots, m.declared_rate, m.declared_period, m.declared_paused), t.name,
            (coalesce(t.set_slots, t.declared_slots), t.rate, t.period, t.paused))
        from batchmill.limits m join batchmill.limits t on t.name = m.template
        where (m.declared_slots, m.declared_rate, m.declared_period, m.declared_paused)
            is distinct from
            (coalesce(t.set_slots, t.declared_slots), t.rate, t.period, t.paused)""",
    "a slot of a provider belongs to the job and the worker of its attempt": """
        select format('hold %s of job %s on worker %s has the fence of job %s on worker %s', h.ticket,
            h.job_id, h.worker_id, j.id, j.worker_id)
        from batchmill.holds h join batchmill.jobs j on j.fence = h.fence
        where (j.id, j.worker_id) <> (h.job_id, h.worker_id)
        union all
        select format('hold %s has no provider', h.ticket) from batchmill.holds h
        where not exists (select from batchmill.providers p where p.id = h.provider_id)""",
    "no attempt gets a slot of a provider before one that has waited longer": """
        select format('hold %s was granted before hold %s', g.ticket, h.ticket)
        from batchmill.holds g join batchmill.holds h on h.provider_id = g.provider_id
        join batchmill.jobs j on j.id = h.job_id and j.fence = h.fence
        join batchmill.workers w on w.id = h.worker_id and w.state in ('live', 'draining')
        where g.granted_at is not null and h.granted_at is null and h.ticket < g.ticket""",
    "a finished batch has no lanes and no limits": """
        select format('lane %s (%s) of batch %s still exists', l.id, l.task, l.batch_id)
        from batchmill.lanes l left join batchmill.batches b on b.id = l.batch_id
        where l.batch_id is not null and (b.id is null or b.finished_at is not null)
        union all
        select format('limit %s of a finished batch still exists', m.name)
        from batchmill.limits m left join batchmill.batches b
            on b.id::text = substring(m.name from 'batch:([0-9a-f-]{36})$')
        where m.name ~ 'batch:[0-9a-f-]{36}$' and (b.id is null or b.finished_at is not null)""",
}

# These hold unless a limit is set below the number of jobs that are running.
EXACT_LIMITS = {
    "no limit is exceeded": """
        select format('limit %s: %s of %s run', m.name, r.jobs, m.slots)
        from batchmill.limits m join running_under r on r.name = m.name
        where r.jobs > m.slots and right(m.name, 2) <> ':*'""",
    "no batch runs more jobs than its task allows": """
        select format('batch %s: %s of %s %s run', j.batch_id, count(*), m.slots, j.task)
        from batchmill.jobs j join batchmill.limits m on m.name = 'task:' || j.task || '/batch:*'
        where j.state = 'running' and j.batch_id is not null
        group by j.batch_id, j.task, m.slots having count(*) > m.slots""",
    "no more running attempts hold a provider than it has slots": """
        select format('%s: %s of %s slots are held', p.name, count(*), p.slots)
        from batchmill.providers p join batchmill.holds h on h.provider_id = p.id
        join batchmill.jobs j on j.id = h.job_id and j.fence = h.fence
        join batchmill.workers w on w.id = h.worker_id and w.state in ('live', 'draining')
        where h.granted_at is not null group by p.id having count(*) > p.slots""",
}


def violations(conn: psycopg.Connection[Any], *, lowered: bool = False) -> list[str]:
    """A line for each violation. With `lowered`, a limit may have been set below the number of jobs
    that were running."""
    asked = query(INVARIANTS if lowered else INVARIANTS | EXACT_LIMITS)
    with conn.transaction():
        # JIT compilation takes longer than the query itself.
        conn.execute("set local jit = off")
        found = conn.execute(asked.encode(), prepare=True).fetchall()
    return [f"{name}: {finding}" for name, finding in found]


def query(invariants: dict[str, str]) -> str:
    parts = (
        f"select '{name.replace(chr(39), chr(39) * 2)}' as name, finding from ({text}) as f (finding)"
        for name, text in invariants.items()
    )
    return SHARED + "\nunion all\n".join(parts)


def file_violations(conn: psycopg.Connection[Any], root: Path) -> list[str]:
    """Compares the rows of artifacts with the files of a local store. Each stored or kept artifact
    must have its file, with the recorded size and checksum, and each file must have a row."""
    found = conn.execute(
        "select id, state, size, sha256, storage_key from batchmill.artifacts"
    ).fetchall()
    known = {root / key for *_, key in found}
    known |= {path.with_name(f"{path.name}.part") for path in known}
    unknown = [f"file {path.name} has no row" for path in files_in(root) if path not in known]
    wrong = [
        f"artifact {id} ({state}) does not match its recorded size and checksum"
        for id, state, size, sha256, key in found
        if state in ("stored", "kept") and size_and_checksum(root / key) != (size, sha256)
    ]
    return unknown + wrong


def files_in(root: Path) -> Iterator[Path]:
    return (path for path in root.rglob("*") if path.is_file())


def size_and_checksum(path: Path) -> tuple[int, str] | None:
    if not path.exists():
        return None
    content = path.read_bytes()
    return len(content), hashlib.sha256(content).hexdigest()
