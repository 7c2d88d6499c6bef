-- name: open_feed
select id, last_number from batchmill.open_feed(%(tenant)s::text, %(label)s::text, %(value)s::text)

-- name: advance_feed
select batchmill.advance_feed(%(feed)s::bigint)

-- name: watch_feed
select batchmill.watch_feed(%(feed)s::bigint, %(most)s::integer)

-- name: feed_news
select seen::text, server, is_exact, changed, joined from batchmill.feed_news(
    %(feeds)s::bigint[], %(numbers)s::bigint[], %(owners)s::text[], %(labels)s::text[], %(values)s::text[],
    %(tenants)s::text[], %(seen)s::pg_snapshot, %(server)s::timestamptz)

-- name: feed_events
-- `shift` is the difference between the numbers in the feed and those in the batch.
select once.before + e.place + part.shift as feed_number, part.batch_id,
    once.before + e.place::integer as number, block.type, e.job_id, e.position,
    coalesce(once.data, e.data) as data, block.at
from (
    select b.id as batch_id, b.expires_on, f.last_number - f.upto as shift,
        greatest(f.upto - f.count, page.after - f.last_number + f.upto) as after,
        least(f.upto, page.upto - f.last_number + f.upto) as upto
    from (select %(after)s::bigint as after, %(after)s::bigint + %(count)s::bigint as upto) page
    cross join lateral (
        select * from batchmill.feed_blocks
        where feed_id = %(feed)s::bigint and last_number > page.after
        order by last_number limit %(count)s::bigint) f
    join batchmill.batches b on b.id = f.batch_id
    where f.last_number - f.count < page.upto
) part
cross join lateral (
    (select * from batchmill.event_blocks
     where batch_id = part.batch_id and expires_on = part.expires_on
       and last_number > part.after and last_number <= part.upto)
    union all
    (select * from batchmill.event_blocks
     where batch_id = part.batch_id and expires_on = part.expires_on and last_number > part.upto
     order by last_number limit 1)
) block
cross join lateral (
    select block.last_number - cardinality(block.job_ids) as before,
        case cardinality(block.data) when 1 then block.data[1] end as data offset 0) once
cross join lateral unnest(block.job_ids, block.positions, block.data) with ordinality
    as e (job_id, position, data, place)
where once.before + e.place > part.after and once.before + e.place <= part.upto
order by feed_number
