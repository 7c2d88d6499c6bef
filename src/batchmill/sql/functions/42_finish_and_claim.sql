-- The call of a busy worker: finish and claim in one transaction.

-- Records the outcomes of attempts and claims new jobs, in one transaction. The order of locks is the same as
-- everywhere, so the lanes for both parts are locked before any limit or batch.
create or replace function turn(
    ids bigint[], fences bigint[], kinds text[], details json, progress json, lanes bigint[],
    worker bigint, tasks text[], wants integer[], want integer, spare integer, since xid8,
    last_tenants text[] default null, last_tenant text default '', lot bigint default 0
) returns json
language plpgsql
set search_path = batchmill, pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
set plan_cache_mode = force_generic_plan as $$
declare
    o outcomes := (ids, fences, kinds, details, progress, lanes);
    submitted bigint[];
    ending bigint[];
    open bigint[];
    limit_ids bigint[];
    refused bigint[];
begin
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
        if (ready_next(turn.tasks, clock()) <= clock()) is not true
            and not exists (select from limits where counts) then
            refused := finish_held(o, lock_above(ending));
            return coalesce(
                start_at_once(submitted, worker, turn.tasks, wants, want, since, refused),
                wait_for_next(submitted, worker, turn.tasks, want, since, refused));
        end if;
        perform put_into_lanes(submitted);
    end if;
    open := open_lanes(turn.tasks, wants, want + spare, last_tenants, ending);
    limit_ids := lock_above(ending || open);
    refused := finish_held(o, limit_ids);
    return claim_from(still_open(open || ending, turn.tasks, clock()), limit_ids, worker, turn.tasks,
        wants, want, spare, since, last_tenants, last_tenant, lot, refused);
end $$;

-- Used when the submitted jobs cannot start at once. Puts them into their lanes; the next claim is due at
-- once.
create or replace function wait_for_next(
    submitted bigint[], worker bigint, of_tasks text[], want integer, since xid8, refused bigint[]
) returns json
language plpgsql as $$
begin
    perform put_into_lanes(submitted);
    return answered(null, 0, false, worker, want, ready_next(of_tasks, clock()), since, refused, clock());
end $$;

-- The held lanes that jobs can start from, after other jobs have ended there.
create or replace function still_open(lane_ids bigint[], of_tasks text[], moment timestamptz) returns bigint[]
language plpgsql as $$
begin
    return array(
        select id from (select * from lanes where id = any (lane_ids) offset 0) l
        where is_open and is_due and task = any (of_tasks));
end $$;
