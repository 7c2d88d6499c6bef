-- Feeds: the events of several batches in one order.
--
-- The events of a batch are numbered in the transactions that write them. There is no such order between
-- batches, and writers must not wait for each other to create one. So the readers of a feed create it: a
-- reader gives the next numbers of the feed to all events that it sees, and stores which. All readers, in any
-- process and at any time, then see the same order. Only feeds that are read cost anything.

-- The feed of a tenant for all its batches, or for those with one label. Creates it if it does not exist. Null if it
-- does not exist and has no batches: a caller can name any label, and must not create rows with that.
create or replace function open_feed(of_tenant text, of_label text, of_value text) returns feeds
language plpgsql as $$
declare
    feed feeds;
begin
    perform refuse_erased(of_tenant);
    loop
        select * into feed from feeds where tenant = of_tenant and label = of_label and value = of_value;
        exit when feed.id is not null or not has_batches(of_tenant, of_label, of_value);
        insert into feeds (tenant, label, value, used_at)
        values (of_tenant, of_label, of_value, date_trunc('hour', clock()))
        on conflict do nothing;
    end loop;
    return feed;
end $$;

-- A plan for any label would expect a match soon, and read all batches if there is none. The statistics know whether
-- few batches have the label, or the tenant has few batches.
create or replace function has_batches(of_tenant text, of_label text, of_value text) returns boolean
language plpgsql stable
set search_path = batchmill, pg_catalog, pg_temp
set enable_seqscan = off set plan_cache_mode = force_custom_plan as $$
begin
    if of_label = '' then
        return exists (select from batches where tenant = of_tenant);
    end if;
    return exists (
        select from batches
        where labels @> jsonb_build_object(of_label, of_value) and labels <> '{}' and tenant = of_tenant);
end $$;

-- Gives numbers to the new events of a feed. Returns the last number, or null if the feed does not exist.
create or replace function advance_feed(of_feed bigint) returns bigint
language plpgsql as $$
declare
    feed feeds;
begin
    select * into feed from feeds where id = of_feed;
    if feed.id is null or not has_news(feed) then
        return feed.last_number;
    end if;
    perform refuse_erased(feed.tenant);
    -- One call at a time. Another one that waited here finds the events numbered.
    select * into feed from feeds where id = of_feed for update;
    perform open_batches_of(feed);
    perform number_events_of(feed);
    perform close_batches_of(feed);
    return (select last_number from feeds where id = of_feed);
end $$;

-- Whether the feed has to be written to. Most calls find nothing new, and write nothing.
create or replace function has_news(feed feeds) returns boolean
language plpgsql stable as $$
begin
    return feed.used_at < clock() - interval '1 hour' or must_search_all(feed) or exists (
        select from batches b
        where b.tenant = feed.tenant and b.begun_by >= pg_snapshot_xmin(feed.seen)
          and not pg_visible_in_snapshot(b.begun_by, feed.seen)
    ) or exists (
        select from feed_batches f join batches b on b.id = f.batch_id
        where f.feed_id = feed.id and f.is_open and (b.last_event > f.upto or b.finished_at is not null));
end $$;

-- Before the first search. Also after the database was restored into another cluster, where transactions have
-- lower numbers.
create or replace function must_search_all(feed feeds) returns boolean
language sql stable
return feed.seen is null or pg_snapshot_xmax(feed.seen) > pg_snapshot_xmax(pg_current_snapshot());

-- Opens the batches that were submitted or retried since the last call. Their transactions may commit in any
-- order and at any time, so a time or an id would miss some. The stored snapshot says exactly which of them the
-- last search saw. The new snapshot must be that of the search, so each search is one statement.
create or replace function open_batches_of(feed feeds) returns void
language plpgsql as $$
declare
    wanted jsonb := case when feed.label = '' then '{}'::jsonb else jsonb_build_object(feed.label, feed.value) end;
begin
    if not must_search_all(feed) then
        with opened as (
            insert into feed_batches (feed_id, tenant, batch_id)
            select feed.id, feed.tenant, b.id from batches b
            where b.tenant = feed.tenant and b.begun_by >= pg_snapshot_xmin(feed.seen)
              and not pg_visible_in_snapshot(b.begun_by, feed.seen) and b.labels @> wanted
            on conflict (feed_id, batch_id) do update set is_open = true
        )
        update feeds set seen = pg_current_snapshot(), used_at = date_trunc('hour', clock()) where id = feed.id;
    elsif feed.label = '' then
        with opened as (
            insert into feed_batches (feed_id, tenant, batch_id)
            select feed.id, feed.tenant, b.id from batches b where b.tenant = feed.tenant
            on conflict (feed_id, batch_id) do update set is_open = true
        )
        update feeds set seen = pg_current_snapshot(), used_at = date_trunc('hour', clock()) where id = feed.id;
    else
        with opened as (
            insert into feed_batches (feed_id, tenant, batch_id)
            select feed.id, feed.tenant, b.id from batches b
            where b.labels @> wanted and b.labels <> '{}' and b.tenant = feed.tenant
            on conflict (feed_id, batch_id) do update set is_open = true
        )
        update feeds set seen = pg_current_snapshot(), used_at = date_trunc('hour', clock()) where id = feed.id;
    end if;
end $$;

-- A batch's row is locked while its events are numbered. So all events up to its last one have committed.
create or replace function number_events_of(feed feeds) returns void
language sql
begin atomic
    with changed as (
        select f.batch_id, b.last_event as upto, b.last_event - f.upto as count,
            sum(b.last_event - f.upto) over (order by b.created_at, b.id rows unbounded preceding) as place
        from feed_batches f join batches b on b.id = f.batch_id
        where f.feed_id = feed.id and f.is_open and b.last_event > f.upto
    ), logged as (
        insert into feed_blocks (feed_id, tenant, last_number, batch_id, upto, count)
        select feed.id, feed.tenant, feed.last_number + place, batch_id, upto, count from changed
    ), moved as (
        update feed_batches f set upto = c.upto from changed c
        where f.feed_id = feed.id and f.batch_id = c.batch_id
    )
    update feeds set last_number = last_number + (select max(place) from changed)
    where id = feed.id and exists (select from changed);
end;

-- Only a retry adds events to a finished batch. One that commits after this statement is not in the feed's
-- snapshot, so the next call opens the batch again.
create or replace function close_batches_of(feed feeds) returns void
language sql
begin atomic
    update feed_batches f set is_open = false from batches b
    where f.feed_id = feed.id and f.is_open
      and b.id = f.batch_id and b.finished_at is not null and b.last_event = f.upto;
end;

-- Opens the batches that have joined the feed, and requests notifications of the events of all its open batches for
-- the next minute. Returns these batches. A row that is locked is left for the next call.
create or replace function watch_feed(of_feed bigint, most integer) returns uuid[]
language plpgsql as $$
declare
    open uuid[];
begin
    perform advance_feed(of_feed);
    open := array(
        select batch_id from feed_batches where feed_id = of_feed and is_open order by batch_id limit most);
    update batches set watched_until = clock() + interval '60 s'
    where id = any (array(
        select id from batches
        where id = any (open) and (watched_until is null or watched_until < clock() + interval '30 s')
        order by id for no key update skip locked));
    return open;
end $$;

-- What may have changed since an earlier call, for all feeds that a process follows: `known` ones with their last
-- numbers, and `awaited` labels, whose feeds do not exist yet. `changed` feeds have new batches or events or do not exist
-- any more. `joined` are the places of the awaited labels that a batch has now. `is_exact` is false if the snapshot of the
-- earlier call is not of this server, or is null. As in open_batches_of(), the snapshot must be that of the search, so
-- this is one statement. It runs every second, so it allows only one plan.
create or replace function feed_news(
    known bigint[], numbers bigint[], awaited_tenants text[], awaited_labels text[], awaited_values text[],
    of_tenants text[], since pg_snapshot, since_server timestamptz,
    out seen pg_snapshot, out server timestamptz, out is_exact boolean, out changed bigint[], out joined bigint[]
)
language plpgsql stable
set search_path = batchmill, pg_catalog, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
set max_parallel_workers_per_gather = 0 set jit = off as $$
begin
    with begun as materialized (
        select distinct t.tenant, part.label, part.value
        from unnest(of_tenants) as t (tenant)
        cross join lateral (
            select labels from batches
            where tenant = t.tenant and begun_by >= pg_snapshot_xmin(since)
              and not pg_visible_in_snapshot(begun_by, since)
            order by begun_by offset 0) b
        cross join lateral (
            select '' as label, '' as value
            union all
            select * from jsonb_each_text(case jsonb_typeof(b.labels) when 'object' then b.labels else '{}' end)
        ) part
    )
    select pg_current_snapshot(), pg_postmaster_start_time(),
        coalesce(pg_postmaster_start_time() = since_server
            and pg_snapshot_xmax(since) <= pg_snapshot_xmax(pg_current_snapshot()), false),
        array(
            select f.id from begun cross join lateral (
                select id from feeds where (tenant, label, value) = (begun.tenant, begun.label, begun.value) offset 0) f
            union all
            select k.id from unnest(known, numbers) as k (id, number) left join lateral (
                select last_number from feeds where id = k.id offset 0) f on true
            where f.last_number is distinct from k.number
            union all
            select k.id from unnest(known) as k (id) cross join lateral (
                select batch_id, upto from feed_batches where feed_id = k.id and is_open offset 0) o
            cross join lateral (select last_event, finished_at from batches where id = o.batch_id offset 0) b
            where b.last_event > o.upto or b.finished_at is not null),
        array(
            select a.place from unnest(awaited_tenants, awaited_labels, awaited_values)
                with ordinality as a (tenant, label, value, place)
            join begun using (tenant, label, value))
    into seen, server, is_exact, changed, joined;
end $$;

-- Deletes feeds that nobody has read for a week; reading one again creates it anew. Also deletes rows of batches
-- that were deleted while a reader added them.
create or replace function tidy_feeds() returns void
language sql
begin atomic
    delete from feeds where id in (
        select id from feeds where used_at < clock() - interval '7 days' limit 100 for update skip locked);
    delete from feed_batches f
    where is_open and not exists (select from batches b where b.id = f.batch_id);
end;
