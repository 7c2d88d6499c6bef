-- Retrying failed jobs by hand.

-- Retries failed jobs of a batch from the stage they failed at, with their inputs and checkpoints. `of_jobs`
-- null means all failed jobs. Returns how many it retries. Of several concurrent calls, one retries the jobs
-- and the others return 0: a call does not retry jobs that fail after it has begun.
create or replace function retry_batch(of_batch uuid, of_jobs bigint[] default null) returns integer
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    asked timestamptz := clock();
    retried integer;
begin
    -- The lanes must exist before the batch is locked. The error below rolls back the block, so a call that
    -- comes too late leaves no lanes behind.
    begin
        perform make_lanes_of_failed(of_batch, of_jobs, asked);
        retried := retry_held(lock_batch(of_batch), of_jobs, asked);
        if retried = 0 then
            raise exception 'Nothing is left to retry.' using errcode = 'BM012';
        end if;
    exception when sqlstate 'BM012' then
        return 0;
    end;
    return retried;
end $$;

create or replace function make_lanes_of_failed(of_batch uuid, of_jobs bigint[], asked timestamptz) returns void
language plpgsql as $$
declare
    lane record;
begin
    for lane in
        select distinct task, tenant, key from finished
        where batch_id = of_batch and state = 'failed' and finished_at <= asked
          and (of_jobs is null or id = any (of_jobs))
        order by 1, 2, 3
    loop
        perform lane_for(lane.task, lane.tenant, of_batch, lane.key);
    end loop;
end $$;

-- Does the work of `retry_batch`. The caller holds the batch and all its lanes.
create or replace function retry_held(batch batches, of_jobs bigint[], asked timestamptz) returns integer
language plpgsql as $$
declare
    moment timestamptz := clock();
    retried bigint[];
begin
    if batch.cancelled_at is not null then
        raise exception 'Batch % was cancelled, so its jobs cannot be retried.', batch.id
            using errcode = 'BM006';
    end if;
    retried := restore_jobs(array(
        select id from finished
        where batch_id = batch.id and expires_on = batch.expires_on and state = 'failed'
          and finished_at <= asked and (of_jobs is null or id = any (of_jobs))),
        batch.expires_on, asked);
    if retried = '{}' then
        return 0;
    end if;
    with logged as (
        insert into event_blocks (batch_id, last_number, tenant, type, job_ids, positions, data, at,
            expires_on)
        select batch.id, batch.last_event + 1 + max(place), batch.tenant, 'job_retrying',
            array_agg(id order by place), array_agg(position order by place),
            array_agg(json_build_object('task', task, 'manual', true) order by place), moment,
            batch.expires_on
        from (
            select *, row_number() over (order by position) as place from jobs where id = any (retried)) j
        group by (place - 1) / 1000
        union all
        select batch.id, batch.last_event + 1, batch.tenant, 'batch_retried', '{null}', '{null}',
            array[json_build_object('jobs', cardinality(retried))], moment, batch.expires_on
    )
    update batches
    set failed = failed - cardinality(retried), state = 'processing', finished_at = null,
        last_event = last_event + 1 + cardinality(retried), begun_by = pg_current_xact_id(),
        generation = generation + (batch.finished_at is not null)::integer
    where id = batch.id;
    perform refuse_erased(batch.tenant);
    -- A finished batch runs its callback again.
    perform count_own_jobs(cardinality(retried)
        + (batch.on_finish is not null and batch.finished_at is not null)::integer);
    perform make_batch_limit(batch);
    perform wait_in_lanes(retried, moment);
    if batch.watched_until > moment then
        perform notify_watchers(array[batch.id]);
    end if;
    perform notify_workers(array(select distinct task from jobs where id = any (retried)));
    return cardinality(retried);
end $$;

-- Retries one failed job, in a batch or not. Of several concurrent calls, one succeeds and the others are
-- refused.
create or replace function retry_job(of_job bigint) returns integer
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    asked timestamptz := clock();
    known finished;
    retried integer;
begin
    perform require_job(of_job);
    select * into known from finished where id = of_job and is_own(tenant);
    if known.state is distinct from 'failed' then
        raise exception 'Job % has not failed, so it cannot be retried.', of_job using errcode = 'BM006';
    end if;
    if known.batch_id is not null then
        retried := retry_batch(known.batch_id, array[of_job]);
    else
        retried := cardinality(restore_jobs(array[of_job], known.expires_on, asked));
        perform refuse_erased(known.tenant);
        perform count_own_jobs(retried);
    end if;
    if retried = 0 then
        raise exception 'Job % was already retried by another call.', of_job using errcode = 'BM006';
    end if;
    return retried;
end $$;

-- Moves jobs that failed before `asked` back to the live jobs. A job loses its deduplication key if another
-- live job has taken it since. Jobs of a batch go to their lanes, other jobs wait like submitted ones.
create or replace function restore_jobs(job_ids bigint[], of_day date, asked timestamptz) returns bigint[]
language plpgsql as $$
declare
    restored bigint[];
begin
    with back as (
        delete from finished
        where id = any (job_ids) and expires_on = of_day and state = 'failed' and finished_at <= asked
        returning *
    ), put as (
        insert into jobs (id, batch_id, position, lane_id, task, tenant, key, state, priority, run_at,
            dedup_key, cache_key, payload, progress, checkpoints, attempts, labels, created_at,
            expires_on, submitted_by)
        overriding system value
        select id, batch_id, position,
            case when batch_id is not null then lane_for(task, tenant, batch_id, key) end,
            task, tenant, key, 'ready', priority, clock(),
            case when not exists (
                select from jobs j where j.tenant = b.tenant and j.dedup_key = b.dedup_key)
                then dedup_key end,
            cache_key, payload, progress, checkpoints, attempts, labels, created_at, expires_on,
            case when batch_id is null then pg_current_xact_id() end
        from back b
        returning id
    )
    select coalesce(array_agg(id), '{}') into restored from put;
    return restored;
end $$;

-- Deletes a finished batch with everything that belongs to it.
create or replace function delete_batch(of_batch uuid) returns void
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    batch batches;
begin
    select * into batch from batches where id = of_batch and is_own(tenant) for update;
    if batch.id is null then
        raise exception 'There is no batch %.', of_batch using errcode = 'BM005';
    end if;
    if batch.finished_at is null then
        raise exception 'Batch % is not finished. Cancel it first.', of_batch using errcode = 'BM006';
    end if;
    delete from finished where batch_id = of_batch and expires_on = batch.expires_on;
    delete from event_blocks where batch_id = of_batch and expires_on = batch.expires_on;
    delete from duplicates where batch_id = of_batch;
    delete from requests where batch_id = of_batch;
    perform give_up_artifacts_of(of_batch);
    delete from notifications where batch_id = of_batch;
    delete from feed_batches where batch_id = of_batch;
    delete from batch_usage where batch_id = of_batch;
    delete from batches where id = of_batch;
end $$;
