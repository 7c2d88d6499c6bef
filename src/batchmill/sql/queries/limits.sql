-- The largest integer as the number of slots means that the limit is set to unlimited.

-- name: set_limit
select name, nullif(coalesce(set_slots, declared_slots), 2147483647) as slots, running, rate, period, paused,
    set_slots is not null or set_rate is not null as is_set
from batchmill.set_limit(%(name)s, %(slots)s::integer, %(rate)s::integer, %(period)s::float8, %(paused)s)

-- name: change_limit
-- Changes only a limit that exists.
select c.name, nullif(coalesce(c.set_slots, c.declared_slots), 2147483647) as slots, c.running, c.rate, c.period,
    c.paused, c.set_slots is not null or c.set_rate is not null as is_set
from (select name from batchmill.limits union all select name from batchmill.providers) m
cross join lateral batchmill.set_limit(m.name, null, null, null, %(paused)s, %(reset)s) c
where m.name = %(name)s

-- name: limits
select name, nullif(coalesce(set_slots, declared_slots), 2147483647) as slots, running, rate, period, paused,
    set_slots is not null or set_rate is not null as is_set
from (select * from batchmill.limits union all select * from batchmill.provider_limits()) m
where slots is not null or rate is not null or paused
order by name

-- name: declare_provider
select batchmill.declare_provider(%(name)s, %(slots)s::integer, %(rate)s::integer, %(period)s::float8)

-- name: hold_slots
select batchmill.hold_slots(%(worker)s::bigint, %(freed)s::bigint[], %(numbers)s::bigint[], %(names)s::text[],
    %(jobs)s::bigint[], %(fences)s::bigint[])
