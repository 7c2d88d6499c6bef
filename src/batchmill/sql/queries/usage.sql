-- Totals of the amounts that handlers recorded.

-- name: daily_usage
-- Without `since`, the last 30 days. Dates are days in UTC, and both are included.
select case when 'day' = any (%(by)s::text[]) then day end as day,
    case when 'tenant' = any (%(by)s::text[]) then tenant end as tenant,
    case when 'task' = any (%(by)s::text[]) then task end as task,
    name, trim_scale(sum(amount)) as amount
from batchmill.daily_usage
cross join (select (batchmill.clock() at time zone 'UTC')::date as date) today
where day between coalesce(%(since)s::date, today.date - 29) and coalesce(%(until)s::date, today.date)
  and (%(tenant)s::text is null or tenant = %(tenant)s::text)
  and (%(task)s::text is null or task = %(task)s::text)
group by 1, 2, 3, 4 order by 1 desc, 2, 3, 4 limit %(count)s::bigint

-- name: batch_usage
select null::date as day, case when 'tenant' = any (%(by)s::text[]) then tenant end as tenant,
    case when 'task' = any (%(by)s::text[]) then task end as task,
    name, trim_scale(sum(amount)) as amount
from batchmill.batch_usage
where batch_id = %(batch)s and (%(tenant)s::text is null or tenant = %(tenant)s::text)
  and (%(task)s::text is null or task = %(task)s::text)
group by 1, 2, 3, 4 order by 2, 3, 4 limit %(count)s::bigint
