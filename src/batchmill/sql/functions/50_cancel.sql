-- Cancelling batches and jobs.

-- Cancels a batch. Waiting jobs end now. Running jobs are marked, keep their slots until their worker stops
-- them, and can only end as cancelled. Returns the number of cancelled jobs.
--
-- This is one transaction, which takes long for a large batch. `begin_cancel` and `cancel_step` do the same
-- in several short ones.
create or replace function cancel_batch(of_batch uuid) returns integer
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    changed integer := begin_cancel(of_batch);
    step record;
    after integer := -1;
begin
    while changed is not null and after is not null loop
        select * into step from cancel_step(of_batch, after, 10000);
        changed := changed + step.cancelled;
        after := step.upto;
    end loop;
    return coalesce(changed, 0);
end $$;

-- Begins to cancel a batch. After commit, no job of the batch starts, and its running jobs can only end as
-- cancelled. `cancel_step` ends the waiting jobs; if the caller dies, the upkeep continues. Returns the
-- number of running jobs, or null if the batch was already finished or cancelled.
create or replace function begin_cancel(of_batch uuid) returns integer
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    moment timestamptz;
    batch batches;
begin
    -- A second caller returns at once, without waiting for locks.
    if exists (select from batches where id = of_batch and is_own(tenant) and cancelled_at is not null) then
        return null;
    end if;
    perform hold_limits_shared();
    -- A keyed task has a lane for each key, so a batch may have very many lanes. The limits need no lock:
    -- waiting jobs do not count on them.
    perform lock_lanes_of(of_batch);
    select * into batch from batches where id = of_batch and is_own(tenant) for update;
    if batch.id is null then
        raise exception 'There is no batch %.', of_batch using errcode = 'BM005';
    end if;
    moment := clock();
    if batch.finished_at is not null or batch.cancelled_at is not null then
        return null;
    end if;
    update batches set cancelled_at = moment, state = 'cancelled' where id = of_batch;
    -- Claims skip lanes where nothing is due.
    update lanes set ready_at = null, is_due = false, blocked_by = null
    where batch_id = of_batch and (ready_at is not null or blocked_by is not null);
    return interrupt_jobs(array(
        select j.id from lanes l
        cross join lateral (
            select id from jobs where lane_id = l.id and not is_scheduled and state = 'running'
            order by -priority, id + 0 limit l.running) j
        where l.batch_id = of_batch and l.is_busy), moment);
end $$;

-- Ends up to `most` waiting jobs of a cancelled batch with a position greater than `after`. Pass `upto` as
-- `after` of the next step; it is null if no waiting job was left.
create or replace function cancel_step(
    of_batch uuid, after bigint, most bigint, out cancelled integer, out upto integer
)
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    batch batches;
    ids bigint[];
begin
    cancelled := 0;
    perform hold_limits_shared();
    -- No job starts in these lanes any more, so a lock on the batch is enough.
    select * into batch from batches where id = of_batch and is_own(tenant) for update;
    if batch.cancelled_at is null or batch.finished_at is not null then
        return;
    end if;
    select array_agg(id), max(position) into ids, upto from (
        select id, position from jobs
        where batch_id = of_batch and position > after and state <> 'running'
        order by position limit most) waiting;
    if ids is not null then
        cancelled := end_waiting(ids, clock());
    end if;
end $$;

create or replace function waiting_jobs(b batches) returns integer
language sql immutable
return b.total - b.running - b.completed - b.failed - b.cancelled;

create or replace function cancel_job(of_job bigint) returns integer
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    lane bigint;
begin
    perform hold_limits_shared();
    loop
        select lane_id into lane from jobs where id = of_job and is_own(tenant);
        if not found then
            perform require_job(of_job);
            return 0;
        end if;
        exit when case when lane is null then hold_without_lane(of_job) else hold_in_lane(of_job, lane) end;
    end loop;
    return cancel_jobs(array[of_job], clock());
end $$;

create or replace function require_job(of_job bigint) returns void
language plpgsql as $$
begin
    -- One statement, so one snapshot: a job that ends or is retried meanwhile is visible in one of the two
    -- tables.
    if not (exists (select from jobs where id = of_job and is_own(tenant))
        or exists (select from finished where id = of_job and is_own(tenant))) then
        raise exception 'There is no job %.', of_job using errcode = 'BM005';
    end if;
end $$;

-- Locks a job that is not in a lane yet. Returns false, without the lock, if a claim has put it into a lane
-- meanwhile: lanes must be locked before jobs. The error rolls the block back and so releases the lock.
create or replace function hold_without_lane(of_job bigint) returns boolean
language plpgsql as $$
begin
    perform from jobs where id = of_job for update;
    if not exists (select from jobs where id = of_job and lane_id is null) then
        raise exception 'Job % has a lane.', of_job using errcode = 'BM012';
    end if;
    return true;
exception when sqlstate 'BM012' then
    return false;
end $$;

-- Locks the lane of a job with its limits and its batch. Returns false, without the locks, if the job has moved to the
-- lane of its next stage meanwhile. It keeps no lock, because all lanes must be locked before the first limit.
create or replace function hold_in_lane(of_job bigint, lane bigint) returns boolean
language plpgsql as $$
begin
    perform lock_around(array[lane]);
    if not exists (select from jobs where id = of_job and lane_id = lane) then
        raise exception 'Job % has another lane.', of_job using errcode = 'BM012';
    end if;
    return true;
exception when sqlstate 'BM012' then
    return false;
end $$;

-- The caller holds the jobs' lanes and batches.
create or replace function cancel_jobs(job_ids bigint[], moment timestamptz) returns integer
language plpgsql as $$
begin
    return interrupt_jobs(job_ids, moment) + end_waiting(job_ids, moment);
end $$;

-- Marks running jobs as cancelled, and notifies their workers.
create or replace function interrupt_jobs(job_ids bigint[], moment timestamptz) returns integer
language plpgsql as $$
declare
    interrupted integer;
begin
    with interrupted_jobs as (
        update jobs set cancelled_at = moment
        where id = any (job_ids) and state = 'running' and cancelled_at is null
        returning worker_id
    ), notified as (
        select count(pg_notify('batchmill', topic('cancel:' || worker_id)))
        from (select distinct worker_id from interrupted_jobs) w
    )
    select count(*) into interrupted from interrupted_jobs cross join notified;
    return interrupted;
end $$;

create or replace function end_waiting(job_ids bigint[], moment timestamptz) returns integer
language plpgsql as $$
declare
    waiting bigint[] := array(
        select id from jobs where id = any (job_ids) and state <> 'running' order by id for update);
begin
    return cardinality(end_jobs((
        waiting, null, array_fill('cancelled'::text, array[cardinality(waiting)]), null, null, null
    ), false, '{}', moment));
end $$;
