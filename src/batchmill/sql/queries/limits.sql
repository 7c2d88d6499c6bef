-- name: set_limit
select name, coalesce(set_slots, declared_slots) as slots, running, rate, period, paused,
    set_slots is not null or set_rate is not null as is_set
from batchmill.set_limit(%(name)s, %(slots)s, %(rate)s, %(period)s, %(paused)s, %(reset)s)

-- name: limits
select name, coalesce(set_slots, declared_slots) as slots, running, rate, period, paused,
    set_slots is not null or set_rate is not null as is_set
from batchmill.limits
where slots is not null or rate is not null or paused
order by name
