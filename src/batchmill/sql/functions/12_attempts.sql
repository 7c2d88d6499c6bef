-- What a running attempt writes; each of these changes nothing once the fence is not the newest.

-- Records the newest progress of attempts: [{"id", "fence", "progress"}]. Returns the ids refused.
create function report_progress(reports json) returns bigint[]
language plpgsql
set search_path = batchmill, pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
    moment timestamptz := clock();
    current bigint[];
    before integer[];
    expiry date[];
    watched uuid[];
begin
    perform lock_batches(array(
        select j.batch_id from json_to_recordset(reports) as r (id bigint, fence bigint)
        cross join lateral (
            select batch_id from jobs where jobs.id = r.id and jobs.fence = r.fence offset 0) j));
    with written as (
        update jobs j set progress = r.progress
        from json_to_recordset(reports) as r (id bigint, fence bigint, progress json)
        where j.id = any (array[r.id]) and j.fence = r.fence
        returning j.id
    )
    select array_agg(id) into current from written;
    with counted as (
        update batches b set last_event = b.last_event + r.n
        from (
            select batch_id, count(*) as n
            from (select batch_id from jobs where id = any (current) offset 0) j
            where batch_id is not null group by batch_id) r
        where b.id = any (array[r.batch_id])
        returning b.*, b.last_event - r.n as before
    )
    select array_agg(c.before order by id), array_agg(expires_on order by id),
        array_agg(id) filter (where watched_until > moment)
    into before, expiry, watched from counted c;
    insert into events (batch_id, number, tenant, type, job_id, position, data, at, expires_on)
    select batch_id, before[place] + row_number() over (partition by place order by id), tenant,
        'job_progress', id, position, progress, moment, expiry[place]
    from (
        select *, dense_rank() over (order by batch_id) as place
        from jobs where id = any (current) and batch_id is not null) j;
    perform notify_watchers(watched);
    return array(
        select r.id from json_to_recordset(reports) as r (id bigint)
        where r.id <> all (coalesce(current, '{}')));
end $$;

-- Keeps what a step of a handler gave, so that a later attempt need not do it again.
create function save_checkpoint(of_job bigint, of_fence bigint, name text, value json) returns boolean
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
begin
    update jobs
    set checkpoints = coalesce(checkpoints, '{}') || jsonb_build_object(name, value)
    where id = of_job and fence = of_fence;
    return found;
end $$;
