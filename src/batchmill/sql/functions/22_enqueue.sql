-- Submitting one job that belongs to no batch. It only inserts, so a caller's long transaction blocks no worker.
-- The first three functions (due time, expiry, cache) serve batches too (23_submit.sql).

-- The next two functions are stable, like the functions they call, so that the planner can inline them.
create or replace function due_at(options jsonb, moment timestamptz) returns timestamptz
language sql stable
return coalesce((options ->> 'run_at')::timestamptz,
    moment + make_interval(secs => (options ->> 'delay')::float8), moment);

create or replace function expiry_of(options jsonb, moment timestamptz) returns timestamptz
language sql stable
return moment + make_interval(secs => coalesce((options ->> 'expires_in')::float8, 30 * 86400));

create or replace function cached_result(of_tenant text, of_key text) returns json
language plpgsql stable as $$
begin
    return (
        select result from finished
        where tenant = of_tenant and cache_key = of_key and state = 'completed'
          and has_its_artifacts(result, of_tenant)
        order by finished_at desc limit 1);
end $$;

-- Submits one job that belongs to no batch. It only inserts, so it never waits for workers. Options: tenant,
-- priority, run_at, delay, key, dedup_key, cache_key, idempotency_key, digest, expires_in, labels, and
-- as_tenant: the operator submits for this tenant, whose quota applies. Returns the job's id, and whether it is a
-- duplicate, cached, or from an earlier request.
create or replace function enqueue(task text, payload json, options jsonb default '{}') returns json
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    moment timestamptz := clock();
    acting text := coalesce(acting_tenant(), options ->> 'as_tenant');
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
    if acting <> options ->> 'as_tenant' then
        perform refuse_other_tenant(acting, options ->> 'as_tenant');
    end if;
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
    if of_tenant <> 'default' then
        perform refuse_erased(of_tenant);
    end if;
    if named <> '{}' and not duplicate then
        perform take_artifacts(named, array_fill(0, array[cardinality(named)]), of_tenant, null, new_id,
            (day_of(expiry) + 1)::timestamp at time zone 'UTC');
    end if;
    if acting is not null and not duplicate and hit is null then
        perform count_jobs(acting, 1);
    end if;
    if options ? 'idempotency_key' then
        update requests set job_id = new_id
        where tenant = of_tenant and key = options ->> 'idempotency_key';
    end if;
    perform notify_workers(array[enqueue.task]);
    return json_build_object('job_id', new_id, 'duplicate', duplicate, 'cached', hit is not null);
end $$;
