-- Submitting a batch, in one call or in several of one transaction.

-- Submits a batch. `items` are objects {"payload", "key", "priority", "run_at", "delay", "dedup_key",
-- "cache_key"}, where only the payload is required. With the option `bare`, they are the payloads themselves.
-- Options: tenant, priority, run_at, delay (defaults for items without their own), expires_in, labels, limit,
-- on_finish, notify, idempotency_key, digest, as_tenant (see enqueue). A large batch takes several calls in one
-- transaction: pass `more` in all but the last, and `batch_id` in all but the first.
create or replace function submit(task text, items json, options jsonb default '{}') returns json
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    moment timestamptz := clock();
    acting text := coalesce(acting_tenant(), options ->> 'as_tenant');
    of_tenant text := coalesce(acting, options ->> 'tenant', 'default');
    known tasks := known_task(submit.task, acting);
    more boolean := coalesce((options ->> 'more')::boolean, false);
    request requests;
    batch batches;
begin
    if acting <> options ->> 'as_tenant' then
        perform refuse_other_tenant(acting, options ->> 'as_tenant');
    end if;
    if not options ? 'checked' then
        perform check_options(options);
        perform check_jobs(known, items, coalesce((options ->> 'bare')::boolean, false));
    end if;
    if options ? 'batch_id' then
        batch := batch_being_submitted((options ->> 'batch_id')::uuid);
        batch := add_to_batch(batch, items, options, more, moment);
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
        batch := create_batch(submit.task, of_tenant, items, options, more, moment);
    end if;
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

-- Inserts a batch with its limit, its notifications and its first items. Bare items all become jobs of one lane, so
-- the batch is inserted with its final counters.
create or replace function create_batch(
    of_task text, of_tenant text, items json, options jsonb, more boolean, moment timestamptz
) returns batches
language plpgsql set enable_seqscan = off as $$
declare
    is_bare boolean := coalesce((options ->> 'bare')::boolean, false);
    due timestamptz := due_at(options, moment);
    expiry timestamptz := expiry_of(options, greatest(due, moment));
    batch batches;
    lane bigint;
begin
    insert into batches (id, tenant, task, total, labels, on_finish, slots, opened_by, created_at,
        expires_at, expires_on)
    values (gen_random_uuid(), of_tenant, of_task, case when is_bare then json_array_length(items) else 0 end,
        coalesce(options -> 'labels', '{}'), options ->> 'on_finish', (options ->> 'limit')::integer,
        case when more then pg_current_xact_id() end, moment, expiry, day_of(expiry))
    returning * into batch;
    if batch.slots is not null then
        perform make_batch_limit(batch);
    end if;
    if options ? 'notify' then
        perform add_notifications(batch, targets_in(options -> 'notify'), moment);
    end if;
    if not is_bare then
        return add_to_batch(batch, items, options, more, moment);
    end if;
    -- Bare items have no keys, so these are the slots that lane_slots() returns, at half its cost.
    insert into lanes (task, tenant, batch_id, key, slots, ready_at, is_due)
    values (of_task, of_tenant, batch.id, '', (select slots from limits where name = 'task:' || of_task || '/batch:*'),
        greatest(due, moment), due <= moment)
    returning id into lane;
    insert into jobs (batch_id, position, lane_id, task, tenant, state, priority, run_at, payload,
        created_at, expires_on)
    select batch.id, p.at - 1, lane, of_task, of_tenant,
        case when due > moment then 'scheduled' else 'ready' end::job_state,
        coalesce((options ->> 'priority')::integer, 0), due, p.payload, moment, batch.expires_on
    from json_array_elements(items) with ordinality as p (payload, at);
    if strpos(items::text, '"artifact"') > 0 then
        perform take_named(batch, items, 0);
    end if;
    return batch;
end $$;

-- Adds items to a batch that is being submitted, and counts them.
create or replace function add_to_batch(
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
    if coalesce((options ->> 'bare')::boolean, false) then
        added := add_payloads(batch, items, of_priority, due, moment);
    else
        if strpos(items::text, '"cache_key"') > 0 then
            hits := add_cached(batch, items, moment);
        end if;
        added := add_jobs(batch, items, of_priority, due, hits, moment);
        if added + cardinality(hits) < json_array_length(items) then
            left_out := add_duplicates(batch, items, of_priority, due, hits, moment);
            added := json_array_length(items) - cardinality(hits) - left_out;
        end if;
    end if;
    if strpos(items::text, '"artifact"') > 0 then
        perform take_named(batch, items, batch.total + batch.duplicates);
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

-- Keeps the artifacts that the items name. The first item has the position `first`. Duplicates and cached items must be
-- stored already: they have no job that needs a file.
create or replace function take_named(batch batches, items json, first integer) returns void
language plpgsql as $$
declare
    jobless integer[] := array(
        select position from duplicates where batch_id = batch.id and position >= first
        union all
        select position from finished
        where batch_id = batch.id and expires_on = batch.expires_on and position >= first);
begin
    perform take_artifacts(array_agg(named.id),
        array_agg(case when p.position <> all (jobless) then p.position end), batch.tenant, batch.id, null,
        batch.expires_at)
    from json_array_elements(items) with ordinality as i (item, at)
    cross join lateral (values (first + i.at::integer - 1)) as p (position)
    cross join lateral unnest(named_artifacts(i.item::text)) as named (id)
    having count(*) > 0;
end $$;

-- Completes a submit: counts the jobs against the quota, records the request, and wakes up a worker. A batch
-- whose results are all cached, or whose items are all duplicates, finishes here.
create or replace function close_batch(batch batches, acting text, options jsonb, moment timestamptz) returns void
language plpgsql as $$
begin
    if batch.total + batch.duplicates = 0 then
        raise exception 'There is nothing to submit: a batch needs at least one job.' using errcode = 'BM002';
    end if;
    if batch.tenant <> 'default' then
        perform refuse_erased(batch.tenant);
    end if;
    if acting is not null then
        -- Duplicates and results from the cache do not count. A batch without other jobs counts once if it
        -- notifies someone, because it may notify many targets.
        perform count_jobs(acting, batch.total - batch.completed + (batch.on_finish is not null)::integer
            + (batch.total = batch.completed and exists (
                select from notifications where batch_id = batch.id))::integer);
    end if;
    if options ? 'idempotency_key' then
        update requests set batch_id = batch.id, digest = coalesce(digest, options ->> 'digest')
        where tenant = batch.tenant and key = options ->> 'idempotency_key';
    end if;
    if batch.completed > 0 then
        update event_blocks set data = array[json_build_object('task', batch.task, 'total', batch.total)]
        where batch_id = batch.id and last_number = 1 and expires_on = batch.expires_on;
    end if;
    if batch.duplicates > 0 then
        perform log_duplicates(batch, moment);
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

-- Adds further jobs of a batch that differ only in their payloads. Returns how many it added.
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

-- Records the items that `add_jobs` has left out, each with the live job that has its key. If that job has ended
-- meanwhile, the item is added as a job after all. Returns how many items have no job of their own.
create or replace function add_duplicates(
    batch batches, items json, of_priority integer, due timestamptz, hits bigint[], moment timestamptz
) returns integer
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    before integer := batch.total + batch.duplicates - 1;
    settled bigint[] := hits;
    recorded integer := 0;
    found_now integer;
begin
    loop
        insert into duplicates (batch_id, position, tenant, original_id, original_batch_id, original_expires_on)
        select batch.id, before + i.at, batch.tenant, j.id, j.batch_id, j.expires_on
        from rows from (json_to_recordset(items) as (dedup_key text)) with ordinality as i (dedup_key, at)
        cross join lateral (
            select * from jobs
            where tenant = batch.tenant and dedup_key = batch.task || ':' || i.dedup_key offset 0) j
        where i.at <> all (settled) and (j.batch_id, j.position) is distinct from (batch.id, before + i.at);
        get diagnostics found_now = row_count;
        recorded := recorded + found_now;
        settled := hits || array(
            select position - before from jobs where batch_id = batch.id and position > before
            union all
            select position - before from duplicates where batch_id = batch.id and position > before);
        exit when cardinality(settled) = json_array_length(items);
        perform add_jobs(batch, items, of_priority, due, settled, moment);
    end loop;
    return recorded;
end $$;

-- Adds an event for each duplicate. No job of the batch has started yet.
create or replace function log_duplicates(batch batches, moment timestamptz) returns void
language plpgsql as $$
begin
    insert into event_blocks (batch_id, last_number, tenant, type, job_ids, positions, data, at, expires_on)
    select batch.id, batch.last_event + max(place), batch.tenant, 'item_duplicate',
        array_agg(null::bigint), array_agg(position order by place),
        array_agg(json_build_object('job_id', original_id, 'batch_id', original_batch_id) order by place),
        moment, batch.expires_on
    from (
        select *, row_number() over (order by position) as place from duplicates
        where batch_id = batch.id) d
    group by (place - 1) / 1000;
    update batches set last_event = last_event + duplicates where id = batch.id;
end $$;

-- Completes the items whose result is in the cache. Returns their places in `items`, counted from 1.
create or replace function add_cached(batch batches, items json, moment timestamptz) returns bigint[]
language plpgsql as $$
declare
    hits bigint[];
    named uuid[];
    named_at integer[];
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
        array(select unnest(named_artifacts(result::text)) from hit order by position),
        array(select position from hit, unnest(named_artifacts(result::text)) order by position)
    into hits, named, named_at from hit;
    if named <> '{}' then
        perform take_artifacts(named, named_at, batch.tenant, batch.id, null, batch.expires_at);
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
