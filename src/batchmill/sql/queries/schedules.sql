-- name: save_schedule
select name, task, payload, tenant, priority, cron, timezone, missed, paused, next_at, last_at, error
from batchmill.save_schedule(%(tenant)s, %(name)s, %(task)s, %(payload)s::json, %(key)s,
    %(priority)s::integer, %(cron)s, %(timezone)s, %(missed)s, %(next_at)s, %(seconds)s::float8)

-- name: delete_schedule
select name from batchmill.delete_schedule(%(tenant)s, %(name)s) as name where name is not null

-- name: pause_schedule
select name, task, payload, tenant, priority, cron, timezone, missed, paused, next_at, last_at, error
from batchmill.pause_schedule(%(tenant)s, %(name)s, %(paused)s) where name is not null

-- name: schedules
select name, task, payload, tenant, priority, cron, timezone, missed, paused, next_at, last_at, error
from batchmill.schedules where (name, tenant) > (%(name)s, %(tenant)s)
order by name, tenant limit %(count)s::bigint

-- name: page_of_schedules
-- `candidates` is the number of schedules without the bound on bytes, plus one if there is a next page.
select name, task, payload::text as payload, tenant, priority, cron, timezone, missed, paused, next_at, last_at,
    error, candidates
from (
    select *, count(*) over () as candidates, row_number() over inorder as number,
        sum(octet_length(payload::text)) over inorder - octet_length(payload::text) as bytes_before
    from (
        select * from batchmill.schedules where (name, tenant) > (%(name)s, %(tenant)s)
        order by name, tenant limit %(count)s::bigint + 1
    ) found
    window inorder as (order by name, tenant)
) numbered
where number <= %(count)s::bigint and bytes_before < %(bytes)s::bigint
order by name, tenant

-- name: clock
select batchmill.clock()
