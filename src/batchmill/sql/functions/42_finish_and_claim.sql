-- The call of a busy worker: finish and claim in one transaction.

-- Records the outcomes of attempts and claims new jobs, in one transaction. The order of locks is the same as
-- everywhere, so the lanes for both parts are locked before any limit or batch.
create or replace function finish_and_claim(
    ids bigint[], fences bigint[], kinds text[], details json, progress json, lanes bigint[],
    worker bigint, tasks text[], wants integer[], want integer, prefetch integer, since xid8,
    last_tenants text[] default null, last_tenant text default '', seed bigint default 0
) returns json
language plpgsql
set search_path = batchmill, pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
set plan_cache_mode = force_generic_plan as $$
declare
    o outcomes := (ids, fences, kinds, details, progress, lanes);
    d demand := (worker, tasks, wants, want, prefetch, since, last_tenants, last_tenant, seed);
    submitted bigint[];
    ending bigint[];
    open bigint[];
    limit_ids bigint[];
    refused bigint[];
begin
    -- The same lock as in hold_limits_shared(), without the cost of a call.
    perform pg_advisory_xact_lock_shared(hashtext('batchmill.limits'));
    if current_setting('batchmill.knows_server', true) is distinct from 'yes' then
        perform recognise_server();
    end if;
    submitted := submitted_jobs(since);
    ending := lanes_to_finish(o);
    if submitted = '{}' then
        perform lock_lanes(ending);
    else
        perform lock_lanes(ending || lanes_of_submitted(submitted));
        if (ready_next(d.tasks, clock()) <= clock()) is not true
            and not exists (select from limits where counts) then
            refused := finish_held(o, lock_above(ending));
            return coalesce(
                start_at_once(submitted, d, refused), wait_for_next(submitted, d, refused));
        end if;
        perform put_into_lanes(submitted);
    end if;
    open := open_lanes(d.tasks, wants, want + prefetch, last_tenants, ending);
    limit_ids := lock_above(ending || open);
    refused := finish_held(o, limit_ids);
    return claim_from_lanes(still_open(open || ending, d.tasks, clock()), limit_ids, d, refused);
end $$;

-- Used when the submitted jobs cannot start at once. Puts them into their lanes; the next claim is due at
-- once.
create or replace function wait_for_next(submitted bigint[], d demand, refused bigint[]) returns json
language plpgsql as $$
begin
    perform put_into_lanes(submitted);
    return answered(
        null, 0, false, d.worker, d.want, ready_next(d.tasks, clock()), d.since, refused, clock());
end $$;

-- The held lanes that jobs can start from, after other jobs have ended there.
create or replace function still_open(lane_ids bigint[], of_tasks text[], moment timestamptz) returns bigint[]
language plpgsql as $$
begin
    return array(
        select id from (select * from lanes where id = any (lane_ids) offset 0) l
        where is_open and is_due and task = any (of_tasks));
end $$;
