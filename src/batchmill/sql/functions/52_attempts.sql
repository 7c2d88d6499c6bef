-- Writes of a running attempt. None of them changes anything if the fence is no longer the newest.

-- Records the newest progress of attempts: [{"id", "fence", "progress"}]. Returns the refused ids.
create or replace function report_progress(reports json) returns bigint[]
language plpgsql
set search_path = batchmill, pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
    moment timestamptz := clock();
    current bigint[];
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
        returning j.id, j.batch_id, j.position, j.progress
    ), counted as (
        update batches b set last_event = b.last_event + w.n
        from (
            select batch_id, count(*)::integer as n, array_agg(id) as job_ids,
                array_agg(position) as positions, array_agg(progress) as data
            from written where batch_id is not null group by batch_id) w
        where b.id = any (array[w.batch_id])
        returning b.*, w.job_ids, w.positions, w.data
    ), logged as (
        insert into event_blocks (batch_id, last_number, tenant, type, job_ids, positions, data, at,
            expires_on)
        select id, last_event, tenant, 'job_progress', job_ids, positions, data, moment, expires_on
        from counted
    )
    select (select array_agg(id) from written),
        (select array_agg(id) from counted where watched_until > moment)
    into current, watched;
    perform notify_watchers(watched);
    return array(
        select r.id from json_to_recordset(reports) as r (id bigint)
        where r.id <> all (coalesce(current, '{}')));
end $$;

-- Saves the result of a handler's step, so that a later attempt need not repeat the step. Claims and the history
-- carry the checkpoints of a job, so their size is bounded.
create or replace function save_checkpoint(of_job bigint, of_fence bigint, name text, value json) returns boolean
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    at_most constant integer := 4194304;
    size integer;
begin
    update jobs
    set checkpoints = coalesce(checkpoints, '{}') || jsonb_build_object(name, value)
    where id = of_job and fence = of_fence
    returning octet_length(checkpoints::text) into size;
    if not found then
        return false;
    end if;
    if size > at_most then
        raise exception 'The checkpoints of the job have % bytes with "%"; the limit is %. Save large values as artifacts.',
            size, name, at_most using errcode = 'BM003';
    end if;
    perform keep_for_checkpoint(of_job, of_fence, value);
    return true;
end $$;
