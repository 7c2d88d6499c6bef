-- name: save_schedule
with saved as (
    insert into batchmill.schedules
        (name, task, payload, key, tenant, priority, cron, timezone, missed, next_at)
    select %(name)s, t.name, %(payload)s::json, %(key)s, %(tenant)s, %(priority)s::integer, %(cron)s,
        %(timezone)s, %(missed)s, %(next_at)s
    from batchmill.known_task(%(task)s) t
    cross join lateral batchmill.check_job(
        t, json_build_object('payload', %(payload)s::json, 'key', %(key)s::text))
    cross join batchmill.check_scheduled(%(payload)s::json)
    on conflict (tenant, name) do update set task = excluded.task, payload = excluded.payload,
        key = excluded.key, priority = excluded.priority, missed = excluded.missed,
        next_at = case when (schedules.cron, schedules.timezone) = (excluded.cron, excluded.timezone)
            then schedules.next_at else excluded.next_at end,
        cron = excluded.cron, timezone = excluded.timezone, error = null
    returning *
)
select name, task, payload, tenant, priority, cron, timezone, missed, paused, next_at, last_at, error
from saved cross join pg_notify('batchmill', 'upkeep')

-- name: delete_schedule
delete from batchmill.schedules where tenant = %(tenant)s and name = %(name)s returning name

-- name: pause_schedule
with changed as (
    update batchmill.schedules set paused = %(paused)s
    where tenant = %(tenant)s and name = %(name)s
    returning *
)
select name, task, payload, tenant, priority, cron, timezone, missed, paused, next_at, last_at, error
from changed cross join pg_notify('batchmill', 'upkeep')

-- name: schedules
select name, task, payload, tenant, priority, cron, timezone, missed, paused, next_at, last_at, error
from batchmill.schedules where (name, tenant) > (%(name)s, %(tenant)s)
order by name, tenant limit %(count)s::bigint

-- name: clock
select batchmill.clock()
