-- Submitting a batch, in one call or in several of one transaction.

-- Submits a batch. `items` are objects {"payload", "key", "priority", "run_at", "delay", "dedup_key",
-- "cache_key"}, where only the payload is required. With the option `bare`, they are the payloads themselves.
-- Options: tenant, priority, run_at, delay (defaults for items without their own), expires_in, labels, limit,
-- on_finish, notify, idempotency_key, digest. A large batch takes several calls in one transaction: pass
-- `more` in all but the last, and `batch_id` in all but the first.
create or replace function submit(task text, items json, options jsonb default '{}') returns json
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    moment timestamptz := clock();
    acting text := acting_tenant();
    of_tenant text := coalesce(acting, options ->> 'tenant', 'default');
    known tasks := known_task(submit.task, acting);
    more boolean := coalesce((options ->> 'more')::boolean, false);
    request requests;
    batch batches;
begin
    if not options ? 'checked' then
        perform check_options(options);
        perform check_jobs(known, items, coalesce((options ->> 'bare')::boolean, false));
    end if;
    if options ? 'batch_id' then
        batch := batch_being_submitted((options ->> 'batch_id')::uuid);
    else
        if options ? 'on_finish' then
            perform known_task(options ->> 'on_finish', acting);
        end if;
        if options ? 'idempotency_key' then
            request := take_request(of_tenant, options ->> 'idempotency_key',
                coalesce(options ->> 'digest', case when not more then
                    md5(submit.task || items::text || (options - 'digest')::text) end),
                batch_expiry(options, moment));
            if request.key is not null then
                return json_build_object('batch_id', request.batch_id, 'existing', true,
                    'digest', request.digest);
            end if;
        end if;
        batch := new_batch(submit.task, of_tenant, options, more, moment);
    end if;
    batch := add_items(batch, items, options, more, moment);
    if not more then
        perform close_batch(batch, acting, options, moment);
    end if;
    return json_build_object('batch_id', batch.id, 'total', batch.total, 'cached', batch.completed,
        'duplicates', batch.duplicates);
end $$;

create or replace function batch_expiry(options jsonb, moment timestamptz) returns timestamptz
language sql stable
return expiry_of(options, greatest(due_at(options, moment), moment));

-- The batch that this transaction is submitting in several calls.
create or replace function batch_being_submitted(of_id uuid) returns batches
language plpgsql as $$
declare
    batch batches;
begin
    select * into batch from batches where id = of_id and opened_by = pg_current_xact_id();
    if batch.id is null then
        raise exception 'The batch was not created by this transaction, so no jobs can be added to it.' using errcode = 'BM002';
    end if;
    return batch;
end $$;

-- Inserts a batch without jobs, with its limit and its notifications.
create or replace function new_batch(
    of_task text, of_tenant text, options jsonb, more boolean, moment timestamptz
) returns batches
language plpgsql as $$
declare
    expiry timestamptz := batch_expiry(options, moment);
    batch batches;
begin
    insert into batches (id, tenant, task, labels, on_finish, slots, opened_by, created_at,
        expires_at, expires_on)
    values (gen_random_uuid(), of_tenant, of_task, coalesce(options -> 'labels', '{}'),
        options ->> 'on_finish', (options ->> 'limit')::integer,
        case when more then pg_current_xact_id() end, moment, expiry, day_of(expiry))
    returning * into batch;
    perform make_batch_limit(batch);
    if options ? 'notify' then
        perform add_notifications(batch, targets_in(options -> 'notify'), moment);
    end if;
    return batch;
end $$;

-- Adds jobs to a batch that is being submitted, and counts them.
create or replace function add_items(
    batch batches, items json, options jsonb, more boolean, moment timestamptz
) returns batches
language plpgsql as $$
declare
    due timestamptz := due_at(options, moment);
    of_priority integer := coalesce((options ->> 'priority')::integer, 0);
    hits bigint[] := '{}';
    added integer;
    left_out integer := 0;
begin
    if strpos(items::text, '"artifact"') > 0 then
        perform take_artifacts(named_artifacts(items::text), batch.tenant, batch.id, null, batch.expires_at);
    end if;
    if (options ->> 'bare')::boolean then
        added := add_payloads(batch, items, of_priority, due, moment);
    else
        if strpos(items::text, '"cache_key"') > 0 then
            hits := add_cached(batch, items, moment);
        end if;
        added := add_jobs(batch, items, of_priority, due, hits, moment);
        left_out := json_array_length(items) - cardinality(hits) - added;
    end if;
    update batches
    set total = total + cardinality(hits) + added,
        duplicates = duplicates + left_out,
        completed = completed + cardinality(hits),
        opened_by = case when more then opened_by end
    where id = batch.id
    returning * into batch;
    return batch;
end $$;

-- Completes a submit: counts the jobs against the quota, records the request, and wakes up a worker. A batch
-- whose results are all cached, or whose items are all duplicates, finishes here.
create or replace function close_batch(batch batches, acting text, options jsonb, moment timestamptz) returns void
language plpgsql as $$
begin
    if batch.total + batch.duplicates = 0 then
        raise exception 'There is nothing to submit: a batch needs at least one job.' using errcode = 'BM002';
    end if;
    if acting is not null then
        -- Results from the cache do not count, but a batch counts at least once: it may notify many targets.
        perform count_jobs(
            acting, greatest(batch.total - batch.completed, 1) + (batch.on_finish is not null)::integer);
    end if;
    if options ? 'idempotency_key' then
        update requests set batch_id = batch.id, digest = coalesce(digest, options ->> 'digest')
        where tenant = batch.tenant and key = options ->> 'idempotency_key';
    end if;
    if batch.completed > 0 then
        update event_blocks set data = array[json_build_object('task', batch.task, 'total', batch.total)]
        where batch_id = batch.id and last_number = 1 and expires_on = batch.expires_on;
    end if;
    if batch.completed = batch.total then
        perform finish_batches(array[batch.id], moment);
    end if;
    perform notify_workers(array[batch.task]);
end $$;

-- A batch that takes several calls is stored completely or not at all, even if the caller commits after every
-- call.
create or replace function refuse_open_batch() returns trigger
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
begin
    if exists (select from batches where id = new.id and opened_by is not null) then
        raise exception 'Batch % is incomplete: submit all of it in one transaction, and the last call without "more".', new.id
            using errcode = 'BM002';
    end if;
    return null;
end $$;

do $$ begin
    if not exists (select from pg_trigger where tgrelid = 'batches'::regclass and tgname = 'batch_is_whole') then
        create constraint trigger batch_is_whole after insert on batches
        deferrable initially deferred for each row when (new.opened_by is not null)
        execute function refuse_open_batch();
    end if;
end $$;

-- Adds jobs that differ only in their payloads. Returns how many it added.
create or replace function add_payloads(
    batch batches, payloads json, of_priority integer, due timestamptz, moment timestamptz
) returns integer
language plpgsql as $$
declare
    lane bigint := lane_for(batch.task, batch.tenant, batch.id, '');
    added integer;
begin
    insert into jobs (batch_id, position, lane_id, task, tenant, state, priority, run_at, payload,
        created_at, expires_on)
    select batch.id, batch.total + batch.duplicates + p.at - 1, lane, batch.task, batch.tenant,
        case when due > moment then 'scheduled' else 'ready' end::job_state, of_priority, due, p.payload,
        moment, batch.expires_on
    from json_array_elements(payloads) with ordinality as p (payload, at);
    get diagnostics added = row_count;
    update lanes
    set ready_at = least(ready_at, greatest(due, moment)), is_due = is_due or due <= moment
    where id = lane;
    return added;
end $$;

-- Adds each item to its lane, except those at the places in `hits`, counted from 1. Returns how many it added.
create or replace function add_jobs(
    batch batches, items json, of_priority integer, due timestamptz, hits bigint[], moment timestamptz
) returns integer
language plpgsql as $$
declare
    lanes_by_key jsonb := (
        select jsonb_object_agg(key, lane_for(batch.task, batch.tenant, batch.id, key)) from (
            select distinct coalesce(key, '') as key from json_to_recordset(items) as i (key text)
            order by 1) used);
    added integer;
begin
    with put as (
        insert into jobs (batch_id, position, lane_id, task, tenant, key, state, priority, run_at,
            dedup_key, cache_key, payload, created_at, expires_on)
        select batch.id, batch.total + batch.duplicates + i.at - 1,
            (lanes_by_key ->> coalesce(i.key, ''))::bigint, batch.task, batch.tenant,
            coalesce(i.key, ''), case when own.due > moment then 'scheduled' else 'ready' end::job_state,
            coalesce(i.priority, of_priority), own.due,
            batch.task || ':' || i.dedup_key, batch.task || ':' || i.cache_key,
            coalesce(i.payload, 'null'), moment, batch.expires_on
        from rows from (json_to_recordset(items) as (payload json, key text, priority integer,
            run_at timestamptz, delay double precision, dedup_key text, cache_key text)
        ) with ordinality as i (payload, key, priority, run_at, delay, dedup_key, cache_key, at)
        cross join lateral (
            select coalesce(i.run_at, moment + make_interval(secs => i.delay), due) as due) own
        where i.at <> all (hits)
        on conflict (tenant, dedup_key) where dedup_key is not null do nothing
        returning lane_id, greatest(run_at, moment) as due
    ), marked as (
        update lanes l set ready_at = least(l.ready_at, p.due), is_due = l.is_due or p.due <= moment
        from (select lane_id, min(put.due) as due from put group by lane_id) p
        where l.id = p.lane_id
    )
    select count(*) into added from put;
    return added;
end $$;

-- Completes the items whose result is in the cache. Returns their places in `items`, counted from 1.
create or replace function add_cached(batch batches, items json, moment timestamptz) returns bigint[]
language plpgsql as $$
declare
    hits bigint[];
    named uuid[];
    before integer := greatest(batch.last_event, 1);
begin
    with hit as (
        insert into finished (id, batch_id, position, task, tenant, key, state, priority, run_at, attempt,
            snoozes, finished_at, cached, cache_key, payload, result, created_at, expires_on)
        select nextval(pg_get_serial_sequence('batchmill.jobs', 'id')), batch.id,
            batch.total + batch.duplicates + i.at - 1, batch.task, batch.tenant, coalesce(i.key, ''),
            'completed', 0, moment, 0, 0, moment, true, batch.task || ':' || i.cache_key,
            coalesce(i.payload, 'null'), known.result, moment, batch.expires_on
        from rows from (json_to_recordset(items) as (payload json, key text, cache_key text)
        ) with ordinality as i (payload, key, cache_key, at)
        cross join lateral (
            select cached_result(batch.tenant, batch.task || ':' || i.cache_key) as result) known
        where i.cache_key is not null and known.result is not null
        returning id, position, task, result
    ), logged as (
        insert into event_blocks (batch_id, last_number, tenant, type, job_ids, positions, data, at,
            expires_on)
        select batch.id, before + count(*), batch.tenant, 'job_completed', array_agg(id),
            array_agg(position), array[json_build_object('task', batch.task, 'cached', true)], moment,
            batch.expires_on
        from hit having count(*) > 0
    )
    select coalesce(array_agg(position - batch.total - batch.duplicates + 1), '{}'),
        array(select distinct unnest(named_artifacts(result::text)) from hit)
    into hits, named from hit;
    if named <> '{}' then
        perform take_artifacts(named, batch.tenant, batch.id, null, batch.expires_at);
    end if;
    if hits <> '{}' then
        if batch.last_event = 0 then
            insert into event_blocks (batch_id, last_number, tenant, type, job_ids, positions, data, at,
                expires_on)
            values (batch.id, 1, batch.tenant, 'batch_started', '{null}', '{null}', '{null}', moment,
                batch.expires_on);
        end if;
        update batches
        set last_event = before + cardinality(hits), state = 'processing', started_at = coalesce(started_at, moment)
        where id = batch.id;
    end if;
    return hits;
end $$;
