-- Lanes: finding or creating them, letting jobs wait in them, and locking them with their limits and batches.

-- Note on the statements of claims and completions: a session plans them once, possibly while tables are
-- nearly empty, and keeps the plan while they grow. So these statements allow only one plan: start from the
-- input, and look up each row by its key. `offset 0` in a lateral subquery enforces this. So does `x.id = any
-- (array[y.id])` instead of `x.id = y.id`: it allows an index lookup, but no merge join and no ordered scan.

-- Returns the lane of a task, tenant, batch and key, and creates it if it does not exist.
create or replace function lane_for(of_task text, of_tenant text, of_batch uuid, of_key text) returns bigint
language plpgsql as $$
declare
    lane_id bigint;
begin
    loop
        if of_batch is null then
            select id into lane_id from lanes
            where batch_id is null and task = of_task and tenant = of_tenant and key = of_key;
        else
            select id into lane_id from lanes
            where batch_id = of_batch and task = of_task and tenant = of_tenant and key = of_key;
        end if;
        exit when lane_id is not null;
        insert into lanes (task, tenant, batch_id, key, slots)
        values (of_task, of_tenant, of_batch, of_key, lane_slots(of_task, of_batch))
        on conflict do nothing
        returning id into lane_id;
        exit when lane_id is not null;
    end loop;
    return lane_id;
end $$;

-- Updates lanes for jobs that have begun to wait in them. The caller holds the lanes.
create or replace function wait_in_lanes(job_ids bigint[], moment timestamptz) returns void
language plpgsql as $$
begin
    update lanes l
    set ready_at = least(l.ready_at, w.due_at),
        is_due = l.is_due or w.due_at <= moment,
        head_rank = case when (w.rank, w.id) <= (l.head_rank, l.head_id) then w.rank else l.head_rank end,
        head_id = case when (w.rank, w.id) <= (l.head_rank, l.head_id) then w.id - 1 else l.head_id end
    from (
        select lane_id,
            min(case state when 'ready' then moment else run_at end) as due_at,
            (array_agg(-priority order by -priority, id) filter (where state = 'ready'))[1] as rank,
            (array_agg(id order by -priority, id) filter (where state = 'ready'))[1] as id
        from (select * from jobs where id = any (job_ids) offset 0) j
        group by lane_id
    ) w
    where l.id = any (array[w.lane_id]);
end $$;

-- Locks lanes, their limits and their batches. The order is the same everywhere: lanes, limits, batches, each
-- by id, and then jobs. Returns the limits.
create or replace function lock_around(lane_ids bigint[]) returns bigint[]
language plpgsql as $$
begin
    perform lock_lanes(lane_ids);
    return lock_above(lane_ids);
end $$;

create or replace function lock_lanes(lane_ids bigint[]) returns void
language plpgsql as $$
begin
    perform from (select distinct id from unnest(lane_ids) as id order by id) l
    cross join lateral (select from lanes where lanes.id = l.id for update) held;
end $$;

create or replace function lock_above(lane_ids bigint[]) returns bigint[]
language plpgsql as $$
declare
    limit_ids bigint[] := '{}';
begin
    if lane_ids = '{}' then
        return limit_ids;
    end if;
    if have_limits(lane_ids) then
        perform make_limits_from_templates(lane_ids);
        limit_ids := array(
            select held.id from (
                select m.id from unnest(limits_over(lane_ids)) as n (name)
                cross join lateral (select id from limits where limits.name = n.name offset 0) m
                order by m.id) m
            cross join lateral (select id from limits where limits.id = m.id for update) held);
    end if;
    perform lock_batches(array(select batch_id from lanes where id = any (lane_ids)));
    return limit_ids;
end $$;

create or replace function lock_batches(batch_ids uuid[]) returns void
language plpgsql as $$
begin
    perform from (
        select distinct id from unnest(batch_ids) as id where id is not null order by id) b
    cross join lateral (select from batches where batches.id = b.id for update) held;
end $$;

-- Locks all lanes of a batch. A job that advances meanwhile may add a lane.
create or replace function lock_lanes_of(of_batch uuid) returns bigint[]
language plpgsql as $$
declare
    lane_ids bigint[];
begin
    loop
        lane_ids := lock_lanes_so_far(of_batch);
        exit when lane_ids is not null;
    end loop;
    return lane_ids;
end $$;

-- Locks the lanes that a batch has now. Returns null, without the locks, if another lane was added meanwhile: its id may
-- be smaller, because ids are issued before the commit. The error rolls the block back and so releases the locks.
create or replace function lock_lanes_so_far(of_batch uuid) returns bigint[]
language plpgsql as $$
declare
    lane_ids bigint[];
begin
    -- Not in the declaration: it runs before the subtransaction starts, so its locks would not be released.
    lane_ids := array(select id from lanes where batch_id = of_batch order by id for update);
    if cardinality(lane_ids) <> (select count(*) from lanes where batch_id = of_batch) then
        raise exception 'Batch % has another lane.', of_batch using errcode = 'BM012';
    end if;
    return lane_ids;
exception when sqlstate 'BM012' then
    return null;
end $$;

-- Locks a batch with all its lanes and their limits.
create or replace function lock_batch(of_batch uuid) returns batches
language plpgsql as $$
declare
    known batches;
begin
    perform hold_limits_shared();
    perform lock_above(lock_lanes_of(of_batch));
    select * into known from batches where id = of_batch and is_own(tenant) for update;
    if known.id is null then
        raise exception 'There is no batch %.', of_batch using errcode = 'BM005';
    end if;
    return known;
end $$;
