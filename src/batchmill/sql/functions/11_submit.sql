-- Errors of class BM are batchmill's own; store/errors.py turns them into typed exceptions.

-- The task that a caller names. Those who act for one tenant may name entry points only.
create function known_task(task_name text, acting_for text) returns batchmill.tasks
language plpgsql as $$
declare
    known tasks;
begin
    select * into known from tasks where name = task_name;
    if known.name is null or is_builtin(task_name) then
        raise exception 'No task "%" is registered: start a worker that has it, or check the name.', task_name
            using errcode = 'BM001';
    end if;
    if not known.entry and acting_for is not null then
        raise exception 'Tenants cannot submit to "%": declare it with @mill.task(entry=True) if they may.',
            task_name using errcode = 'BM014';
    end if;
    return known;
end $$;

-- Schedules fire as their owner, so what a tenant schedules is checked when it is saved.
create function require_scheduled_entry() returns trigger
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
begin
    perform known_task(new.task, acting) from acting_tenant() as acting where acting is not null;
    return new;
end $$;

create trigger schedule_has_entry before insert or update of task, payload, key on schedules
for each row execute function require_scheduled_entry();

create function check_priority(priority integer) returns void
language plpgsql as $$
begin
    if priority not between -32768 and 32767 then
        raise exception 'A priority goes from -32768 to 32767, not %.', priority using errcode = 'BM002';
    end if;
end $$;

-- Times that every language can tell, and spans that lead to such times.
create function check_times(options json) returns void
language plpgsql as $$
begin
    if (options ->> 'run_at')::timestamptz not between '1970-01-01 UTC' and '9000-01-01 UTC' then
        raise exception 'run_at must lie between 1970 and 9000, not at %.', options ->> 'run_at'
            using errcode = 'BM002';
    end if;
    if (options ->> 'delay')::float8 not between 0 and 86400 * 3660
        or (options ->> 'expires_in')::float8 not between 0 and 86400 * 3660 then
        raise exception 'A delay or expires_in must be from 0 seconds to ten years.' using errcode = 'BM002';
    end if;
end $$;

-- What the Python library has checked already, for callers in other languages.
create function check_job(known tasks, job json) returns void
language plpgsql as $$
declare
    payload json := case when json_typeof(job) = 'object' then job -> 'payload' end;
    has_key boolean := json_typeof(job) = 'object' and coalesce(job ->> 'key', '') <> '';
    at_most integer := known.payload_limit;
begin
    if json_typeof(job) <> 'object' then
        raise exception 'An item is {"payload": …} with options, not %.', left(job::text, 100)
            using errcode = 'BM002';
    end if;
    -- Most items have no options, and a call costs more than this look.
    if (job ->> 'priority') is not null then
        perform batchmill.check_priority((job ->> 'priority')::integer);
    end if;
    if coalesce(job ->> 'run_at', job ->> 'delay', job ->> 'expires_in') is not null then
        perform batchmill.check_times(job);
    end if;
    if has_key and not known.keyed then
        raise exception 'The task "%" declares no key, so its jobs cannot have one.', known.name
            using errcode = 'BM002';
    elsif known.keyed and not has_key then
        raise exception 'The task "%" declares a key, so its jobs need one.', known.name
            using errcode = 'BM002';
    end if;
    if octet_length(payload::text) > at_most then
        raise exception 'The payload has % bytes; the limit is %.', octet_length(payload::text), at_most
            using errcode = 'BM003';
    end if;
    perform payload::jsonb;
end $$;

create function check_jobs(known tasks, items json, bare boolean) returns void
language plpgsql as $$
begin
    if json_typeof(items) is distinct from 'array' then
        raise exception 'The items of a batch are a JSON array.' using errcode = 'BM002';
    end if;
    perform check_job(known, case when bare then json_build_object('payload', item) else item end)
    from json_array_elements(items) as item;
exception when untranslatable_character then
    raise exception 'The payload holds a NUL character, which Postgres cannot store.' using errcode = 'BM002';
end $$;

create function check_options(options jsonb) returns void
language plpgsql as $$
begin
    if jsonb_typeof(options) <> 'object' then
        raise exception 'Options are a JSON object.' using errcode = 'BM002';
    end if;
    if options ->> 'tenant' = '' then
        raise exception 'A tenant has a name.' using errcode = 'BM002';
    end if;
    if (options ->> 'limit')::integer < 1 then
        raise exception 'The limit of a batch is at least 1.' using errcode = 'BM002';
    end if;
    perform check_priority((options ->> 'priority')::integer);
    perform check_times(options::json);
end $$;

-- These two are stable, as what they call is: so the planner can put them in place.
create function due_at(options jsonb, moment timestamptz) returns timestamptz
language sql stable
return coalesce((options ->> 'run_at')::timestamptz,
    moment + make_interval(secs => (options ->> 'delay')::float8), moment);

create function expiry_of(options jsonb, moment timestamptz) returns timestamptz
language sql stable
return moment + make_interval(secs => coalesce((options ->> 'expires_in')::float8, 30 * 86400));

-- The advisory lock that stands for an idempotency key. Two keys that share one only wait for each other.
create function request_lock(of_tenant text, of_key text) returns bigint
language sql stable
return hashtextextended('batchmill.request', hashtextextended(of_tenant, hashtextextended(of_key, 0)));

-- Holds an idempotency key until the transaction ends. False at once if another transaction has it: the
-- caller can then wait without a connection.
create function hold_request(of_tenant text, of_key text) returns boolean
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
begin
    return pg_try_advisory_xact_lock(request_lock(coalesce(acting_tenant(), of_tenant), of_key));
end $$;

-- Takes an idempotency key, or returns the request that has it. A second request waits here until the first
-- has committed, unless its transaction holds the key already. A null digest means that the caller is still
-- reading what it submits.
create function take_request(of_tenant text, of_key text, of_digest text, expiry timestamptz)
returns requests
language plpgsql as $$
declare
    known requests;
begin
    perform pg_advisory_xact_lock(request_lock(of_tenant, of_key));
    insert into requests (tenant, key, digest, expires_at) values (of_tenant, of_key, of_digest, expiry)
    on conflict do nothing;
    if not found then
        select * into known from requests where tenant = of_tenant and key = of_key;
        if known.digest <> of_digest then
            raise exception 'The idempotency key "%" was used for another request.', of_key
                using errcode = 'BM004';
        end if;
    end if;
    return known;
end $$;

create function cached_result(of_tenant text, of_key text) returns json
language plpgsql stable as $$
begin
    return (
        select result from finished
        where tenant = of_tenant and cache_key = of_key and state = 'completed'
          and has_its_artifacts(result, of_tenant)
        order by finished_at desc limit 1);
end $$;

-- Submits one job that belongs to no batch; only inserts, so it never waits for workers. Options:
-- tenant, priority, run_at, delay, key, dedup_key, cache_key, idempotency_key, digest, expires_in,
-- labels. Returns the job's id and whether it is a duplicate, cached, or of an earlier request.
create function enqueue(task text, payload json, options jsonb default '{}') returns json
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    moment timestamptz := clock();
    acting text := acting_tenant();
    of_tenant text := coalesce(acting, options ->> 'tenant', 'default');
    of_dedup text := enqueue.task || ':' || (options ->> 'dedup_key');
    of_cache text := enqueue.task || ':' || (options ->> 'cache_key');
    of_key text := coalesce(options ->> 'key', '');
    due timestamptz := due_at(options, moment);
    expiry timestamptz := expiry_of(options, greatest(due, moment));
    known tasks := known_task(enqueue.task, acting);
    request requests;
    hit json;
    duplicate boolean := false;
    new_id bigint;
    named uuid[] := case when strpos(enqueue.payload::text, '"artifact"') > 0
        then named_artifacts(enqueue.payload::text) else '{}' end;
begin
    if not options ? 'checked' then
        perform check_options(options);
        perform check_jobs(known, json_build_array(
            json_build_object('payload', enqueue.payload, 'key', of_key)), false);
    end if;
    if options ? 'idempotency_key' then
        request := take_request(of_tenant, options ->> 'idempotency_key',
            coalesce(options ->> 'digest', md5(enqueue.task || enqueue.payload::text || (options - 'digest')::text)), expiry);
        if request.key is not null then
            return json_build_object('job_id', request.job_id, 'existing', true);
        end if;
    end if;
    if of_cache is not null then
        hit := cached_result(of_tenant, of_cache);
        named := named || named_artifacts(hit::text);
    end if;
    if hit is not null then
        new_id := nextval(pg_get_serial_sequence('batchmill.jobs', 'id'));
        insert into finished (id, position, task, tenant, key, state, priority, run_at, attempt, snoozes,
            finished_at, cached, dedup_key, cache_key, payload, result, labels, created_at, expires_on)
        values (new_id, 0, enqueue.task, of_tenant, of_key, 'completed', 0, moment, 0, 0, moment, true,
            of_dedup, of_cache, enqueue.payload, hit, options -> 'labels', moment, day_of(expiry));
    end if;
    while new_id is null loop
        insert into jobs (position, task, tenant, key, state, priority, run_at, dedup_key, cache_key,
            payload, labels, created_at, expires_on, submitted_by)
        values (0, enqueue.task, of_tenant, of_key,
            case when due > moment then 'scheduled' else 'ready' end::job_state,
            coalesce((options ->> 'priority')::integer, 0), due, of_dedup, of_cache, enqueue.payload,
            options -> 'labels', moment, day_of(expiry), pg_current_xact_id())
        on conflict (tenant, dedup_key) where dedup_key is not null do nothing
        returning id into new_id;
        if new_id is null then
            select id into new_id from jobs where tenant = of_tenant and dedup_key = of_dedup;
            duplicate := new_id is not null;
        end if;
    end loop;
    if acting is not null and not duplicate and hit is null then
        perform count_jobs(acting, 1);
    end if;
    if named <> '{}' and not duplicate then
        perform take_artifacts(named, of_tenant, null, new_id, (day_of(expiry) + 1)::timestamp at time zone 'UTC');
    end if;
    if options ? 'idempotency_key' then
        update requests set job_id = new_id
        where tenant = of_tenant and key = options ->> 'idempotency_key';
    end if;
    perform notify_workers(array[enqueue.task]);
    return json_build_object('job_id', new_id, 'duplicate', duplicate, 'cached', hit is not null);
end $$;

-- Submits a batch. `items` are {"payload", "key", "priority", "run_at", "delay", "dedup_key",
-- "cache_key"}, all but the payload optional, or with the option `bare` the payloads themselves.
-- Options: tenant, priority, run_at, delay (for items that have none), expires_in, labels, limit,
-- on_finish, notify, idempotency_key, digest. A large batch comes in several calls of one transaction:
-- `more` in all but the last, `batch_id` in all but the first.
create function submit(task text, items json, options jsonb default '{}') returns json
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    moment timestamptz := clock();
    acting text := acting_tenant();
    of_tenant text := coalesce(acting, options ->> 'tenant', 'default');
    due timestamptz := due_at(options, moment);
    expiry timestamptz := expiry_of(options, greatest(due, moment));
    known tasks := known_task(submit.task, acting);
    of_priority integer := coalesce((options ->> 'priority')::integer, 0);
    bare boolean := coalesce((options ->> 'bare')::boolean, false);
    more boolean := coalesce((options ->> 'more')::boolean, false);
    request requests;
    batch batches;
    hits bigint[] := '{}';
    added integer;
    left_out integer := 0;
begin
    if not options ? 'checked' then
        perform check_options(options);
        perform check_jobs(known, items, bare);
    end if;
    if options ? 'batch_id' then
        select * into batch from batches
        where id = (options ->> 'batch_id')::uuid and opened_by = pg_current_xact_id();
        if batch.id is null then
            raise exception 'The batch is not being submitted by this transaction.' using errcode = 'BM002';
        end if;
    else
        if options ? 'on_finish' then
            perform known_task(options ->> 'on_finish', acting);
        end if;
        if options ? 'idempotency_key' then
            request := take_request(of_tenant, options ->> 'idempotency_key',
                coalesce(options ->> 'digest', case when not more then
                    md5(submit.task || items::text || (options - 'digest')::text) end), expiry);
            if request.key is not null then
                return json_build_object('batch_id', request.batch_id, 'existing', true,
                    'digest', request.digest);
            end if;
        end if;
        insert into batches (id, tenant, task, labels, on_finish, slots, opened_by, created_at,
            expires_at, expires_on)
        values (gen_random_uuid(), of_tenant, submit.task, coalesce(options -> 'labels', '{}'),
            options ->> 'on_finish', (options ->> 'limit')::integer,
            case when more then pg_current_xact_id() end, moment,
            expiry, day_of(expiry))
        returning * into batch;
        perform make_batch_limit(batch);
        if options ? 'notify' then
            perform add_notifications(batch, targets_in(options -> 'notify'), moment);
        end if;
    end if;
    if strpos(items::text, '"artifact"') > 0 then
        perform take_artifacts(named_artifacts(items::text), of_tenant, batch.id, null, batch.expires_at);
    end if;
    if bare then
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
    if not more then
        if batch.total + batch.duplicates = 0 then
            raise exception 'There is nothing to submit: a batch has at least one job.'
                using errcode = 'BM002';
        end if;
        if acting is not null then
            -- What is answered from the cache does not count, but a batch does: it may tell many people.
            perform count_jobs(
                acting, greatest(batch.total - batch.completed, 1) + (batch.on_finish is not null)::integer);
        end if;
        if options ? 'idempotency_key' then
            update requests set batch_id = batch.id, digest = coalesce(digest, options ->> 'digest')
            where tenant = of_tenant and key = options ->> 'idempotency_key';
        end if;
        if batch.completed > 0 then
            update event_blocks set data = array[json_build_object('task', batch.task, 'total', batch.total)]
            where batch_id = batch.id and last_number = 1 and expires_on = batch.expires_on;
        end if;
        if batch.completed = batch.total then
            perform finish_batches(array[batch.id], moment);
        end if;
        perform notify_workers(array[submit.task]);
    end if;
    return json_build_object('batch_id', batch.id, 'total', batch.total, 'cached', batch.completed,
        'duplicates', batch.duplicates);
end $$;

-- A batch in several calls is whole or not at all, also where every call commits by itself.
create function refuse_open_batch() returns trigger
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
begin
    if exists (select from batches where id = new.id and opened_by is not null) then
        raise exception 'Batch % has to be submitted in one transaction, up to a call without "more".', new.id
            using errcode = 'BM002';
    end if;
    return null;
end $$;

create constraint trigger batch_is_whole after insert on batches
deferrable initially deferred for each row when (new.opened_by is not null)
execute function refuse_open_batch();

-- Adds jobs that differ in nothing but their payloads. Returns how many there are.
create function add_payloads(
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

-- Adds the items that have to run, all but those at the places in `hits`, each to its lane. Returns
-- how many there are.
create function add_jobs(
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
    ), told as (
        update lanes l set ready_at = least(l.ready_at, p.due), is_due = l.is_due or p.due <= moment
        from (select lane_id, min(put.due) as due from put group by lane_id) p
        where l.id = p.lane_id
    )
    select count(*) into added from put;
    return added;
end $$;

-- Completes the items whose result is known already. Returns their places.
create function add_cached(batch batches, items json, moment timestamptz) returns bigint[]
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
    ), told as (
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
