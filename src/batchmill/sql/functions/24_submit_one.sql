-- Submitting a batch of one job: the rows are those of `submit` (23_submit.sql), the steps those of `enqueue`.

-- Submits a batch of one job that has no limit, callback, notification or key. A batch of one is followed like any
-- other; without a function of its own it would cost a quarter more. Options: tenant, priority, run_at, delay,
-- expires_in, labels, as_tenant (see enqueue).
create or replace function submit_one(task text, payload json, options jsonb default '{}') returns json
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp set enable_seqscan = off as $$
#variable_conflict use_column
declare
    moment timestamptz := clock();
    acting text := coalesce(acting_tenant(), options ->> 'as_tenant');
    of_tenant text := coalesce(acting, options ->> 'tenant', 'default');
    due timestamptz := due_at(options, moment);
    expiry timestamptz := expiry_of(options, greatest(due, moment));
    known tasks := known_task(submit_one.task, acting);
    new_id uuid := gen_random_uuid();
    lane bigint;
    named uuid[];
begin
    if acting <> options ->> 'as_tenant' then
        perform refuse_other_tenant(acting, options ->> 'as_tenant');
    end if;
    if not options ? 'checked' then
        perform check_options(options);
        perform check_jobs(known, json_build_array(submit_one.payload), true);
        perform refuse_options_of_submit(options);
    end if;
    insert into batches (id, tenant, task, total, labels, created_at, expires_at, expires_on)
    values (new_id, of_tenant, submit_one.task, 1, coalesce(options -> 'labels', '{}'), moment, expiry, day_of(expiry));
    insert into lanes (task, tenant, batch_id, slots, ready_at, is_due)
    values (submit_one.task, of_tenant, new_id,
        (select slots from limits where name = 'task:' || submit_one.task || '/batch:*'),
        greatest(due, moment), due <= moment)
    returning id into lane;
    insert into jobs (batch_id, position, lane_id, task, tenant, state, priority, run_at, payload, created_at,
        expires_on)
    values (new_id, 0, lane, submit_one.task, of_tenant,
        case when due > moment then 'scheduled' else 'ready' end::job_state,
        coalesce((options ->> 'priority')::integer, 0), due, submit_one.payload, moment, day_of(expiry));
    if strpos(submit_one.payload::text, '"artifact"') > 0 then
        named := named_artifacts(submit_one.payload::text);
        perform take_artifacts(named, array_fill(0, array[cardinality(named)]), of_tenant, new_id, null, expiry);
    end if;
    if of_tenant <> 'default' then
        perform refuse_erased(of_tenant);
    end if;
    if acting is not null then
        perform count_jobs(acting, 1);
    end if;
    perform notify_workers(array[submit_one.task]);
    return json_build_object('batch_id', new_id);
end $$;

create or replace function refuse_options_of_submit(options jsonb) returns void
language plpgsql as $$
declare
    refused text := (
        select string_agg(name, ', ' order by name) from jsonb_object_keys(options) as name
        where name in ('limit', 'on_finish', 'notify', 'idempotency_key', 'dedup_key', 'cache_key', 'key'));
begin
    if refused is not null then
        raise exception 'submit_one does not take these options: %. Use submit.', refused using errcode = 'BM002';
    end if;
end $$;
