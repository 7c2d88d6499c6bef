-- Cancels jobs of a batch, or one job: those that wait end now, those that run are marked, keep their
-- slots until their worker lets go, and can only end as cancelled. Returns how many were cancelled.
create function cancel_batch(of_batch uuid) returns integer
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    moment timestamptz;
    batch batches;
    part integer;
    changed integer := 0;
begin
    batch := lock_batch(of_batch);
    moment := clock();
    if batch.finished_at is not null or batch.cancelled_at is not null then
        return 0;
    end if;
    update batches set cancelled_at = moment, state = 'cancelled' where id = of_batch;
    loop
        -- In parts, so that a million jobs do not have to fit into memory at once.
        part := cancel_jobs(array(
            select j.id from lanes l join jobs j on j.lane_id = l.id
            where l.batch_id = of_batch and j.cancelled_at is null limit 10000), moment);
        exit when part = 0;
        changed := changed + part;
    end loop;
    return changed;
end $$;

create function cancel_job(of_job bigint) returns integer
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    lane bigint;
    alone boolean := exists (select from jobs where id = of_job and lane_id is null);
begin
    -- No claim is putting this job into a lane while the limits are held still.
    perform case when alone then hold_limits_still() else hold_limits_shared() end;
    loop
        select lane_id into lane from jobs where id = of_job and is_own(tenant);
        if not found then
            if not exists (select from finished where id = of_job and is_own(tenant)) then
                raise exception 'There is no job %.', of_job using errcode = 'BM005';
            end if;
            return 0;
        end if;
        if lane is null and not alone then
            raise exception 'Job % was retried meanwhile.', of_job using errcode = 'serialization_failure';
        end if;
        perform lock_around(array[lane]);
        -- While this waited, the job may have left for the lane of its next stage.
        exit when exists (select from jobs where id = of_job and lane_id is not distinct from lane);
    end loop;
    return cancel_jobs(array[of_job], clock());
end $$;

-- The caller holds the jobs' lanes and batches.
create function cancel_jobs(job_ids bigint[], moment timestamptz) returns integer
language plpgsql as $$
declare
    waiting bigint[];
    interrupted integer;
begin
    with told as (
        update jobs set cancelled_at = moment
        where id = any (job_ids) and state = 'running' and cancelled_at is null
        returning worker_id
    ), rung as (
        select count(pg_notify('batchmill', topic('cancel:' || worker_id)))
        from (select distinct worker_id from told) w
    )
    select count(*) into interrupted from told cross join rung;

    waiting := array(
        select id from jobs where id = any (job_ids) and state <> 'running' order by id for update);
    return interrupted + cardinality(end_jobs((
        waiting, null, array_fill('cancelled'::text, array[cardinality(waiting)]), null, null, null
    ), false, '{}', moment));
end $$;
