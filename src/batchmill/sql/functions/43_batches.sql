-- The limit of a batch, and how a batch finishes.

-- The state of a batch whose jobs have all ended.
create or replace function final_state(b batches) returns batch_state
language sql immutable
return case
    when b.cancelled_at is not null then 'cancelled'
    when b.completed = b.total then 'completed'
    when b.cancelled = b.total then 'cancelled'
    when b.completed > 0 then 'partial'
    else 'failed'
end::batch_state;

-- Finishes batches whose last job has ended: sets the state, adds the last event, creates the callback and
-- the notifications, and deletes lanes and limits. The caller holds the rows of the batches, so each finishes
-- once.
create or replace function finish_batches(batch_ids uuid[], moment timestamptz) returns void
language plpgsql as $$
begin
    with done as (
        update batches b
        set state = final_state(b), finished_at = moment, last_event = b.last_event + 1
        where b.id = any (batch_ids)
        returning b.*
    ), logged as (
        insert into event_blocks (batch_id, last_number, tenant, type, job_ids, positions, data, at,
            expires_on)
        select id, last_event, tenant,
            case state when 'cancelled' then 'batch_cancelled' else 'batch_completed' end,
            '{null}', '{null}', array[batch_summary(d)], moment, expires_on
        from done d
    )
    insert into jobs (position, task, tenant, state, run_at, payload, created_at, expires_on, submitted_by)
    select 0, on_finish, tenant, 'ready', moment, batch_summary(d), moment, expires_on,
        pg_current_xact_id()
    from done d where on_finish is not null;
    if exists (select from notifications where batch_id = any (batch_ids)) then
        perform notify_finished(batch_ids, moment);
    end if;

    perform pg_notify('batchmill', topic('done:' || id)) from batches
    where id = any (batch_ids) and watched_until > moment;
    perform notify_workers(array(select on_finish from batches where id = any (batch_ids)));
    -- A claim may hold an empty lane and wait for a lock that this transaction holds. So skip locked rows;
    -- the upkeep deletes them later.
    delete from limits where id = any (array(
        select id from limits where name = any (array(
            select 'batch:' || id from unnest(batch_ids) as id
            union
            select kind || '/batch:' || batch_id
            from lanes cross join unnest(array['task:' || task, 'pipeline:' || pipeline_of(task)]) as kind
            where batch_id = any (batch_ids)))
        for update skip locked));
    delete from lanes where id = any (array(
        select id from lanes where batch_id = any (batch_ids) for update skip locked));
end $$;

-- The limit that a batch was submitted with. It is dropped when the batch finishes, and restored on a retry.
create or replace function make_batch_limit(b batches) returns void
language sql
begin atomic
    insert into limits (name, set_slots, declared_slots, declared_rate, declared_period, declared_paused)
    select 'batch:' || b.id, b.slots, t.slots, t.rate, t.period, coalesce(t.paused, false)
    from (select) one left join declared_by('batch:*') t on true
    where b.slots is not null
    on conflict do nothing;
end;

create or replace function batch_summary(b batches) returns json
language sql stable
return json_build_object('batch_id', b.id, 'tenant', b.tenant, 'state', b.state, 'total', b.total,
    'completed', b.completed, 'failed', b.failed, 'cancelled', b.cancelled, 'duplicates', b.duplicates,
    'generation', b.generation);
