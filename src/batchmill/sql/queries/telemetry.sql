-- Queries for metrics and traces, in addition to the overview of tasks.

-- name: measured_limits
-- Leaves out the limits of tenants, batches and keys, because their number is unbounded.
select m.name, nullif(coalesce(m.set_slots, m.declared_slots), 2147483647) as slots, m.running, m.rate,
    m.period, m.paused, m.set_slots is not null or m.set_rate is not null as is_set
from (
    select found.* from (select 'system' as name union all select 'task:' || name from batchmill.tasks) known
    cross join lateral (select * from batchmill.limits where name = known.name) found
    union all
    select * from batchmill.provider_limits()) m
where m.slots is not null or m.rate is not null
order by m.name limit %(count)s::bigint

-- name: count_open
-- A batch has lanes until it is finished, so this query does not read finished batches.
select
    (select count(*) from batchmill.workers
     where state = 'live' and lease_until > batchmill.clock()) as workers,
    (select count(*) from (
        select from (select distinct batch_id from batchmill.lanes where batch_id is not null) l
        cross join lateral (
            select from batchmill.batches where id = l.batch_id and finished_at is null) b
        limit %(cap)s::bigint) counted) as batches
