-- The lane of a task, tenant, batch and key, made if it is not there.
create function lane_for(of_task text, of_tenant text, of_batch uuid, of_key text) returns bigint
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

-- Tells lanes of jobs that have begun to wait in them. The caller holds the lanes.
create function wait_in_lanes(job_ids bigint[], moment timestamptz) returns void
language plpgsql as $$
begin
    update lanes l
    set ready_at = least(l.ready_at, w.due_at),
        head_rank = case when w.before_head then w.rank else l.head_rank end,
        head_id = case when w.before_head then w.id - 1 else l.head_id end
    from (
        select j.lane_id,
            min(case j.state when 'ready' then moment else j.run_at end) as due_at,
            (array_agg(-j.priority order by -j.priority, j.id) filter (where j.state = 'ready'))[1] as rank,
            (array_agg(j.id order by -j.priority, j.id) filter (where j.state = 'ready'))[1] as id,
            bool_or(j.state = 'ready' and (-j.priority, j.id) <= (s.head_rank, s.head_id)) as before_head
        from jobs j join lanes s on s.id = j.lane_id
        where j.id = any (job_ids)
        group by j.lane_id
    ) w
    where l.id = w.lane_id;
end $$;

-- Locks lanes, the limits they count on and their batches, in the one order used everywhere:
-- lanes, limits, batches, each by id; jobs come after all of them.
create function lock_around(lane_ids bigint[]) returns void
language plpgsql as $$
begin
    perform from lanes where id = any (lane_ids) order by id for update;
    perform lock_above(lane_ids);
end $$;

create function lock_above(lane_ids bigint[]) returns void
language plpgsql as $$
begin
    if exists (select from limits) then
        perform make_limits_from_templates(lane_ids);
        perform from limits where name in (
            select n.name from lanes l
            cross join lateral limit_names(l.task, l.tenant, l.batch_id, l.key) n
            where l.id = any (lane_ids))
        order by id for update;
    end if;
    perform from batches where id in (
        select batch_id from lanes where id = any (lane_ids) and batch_id is not null)
    order by id for update;
end $$;

-- Locks a batch with all its lanes; a job that advances meanwhile may add one.
create function lock_batch(of_batch uuid) returns batches
language plpgsql as $$
declare
    lane_ids bigint[];
    known batches;
begin
    perform hold_limits_shared();
    loop
        lane_ids := array(select id from lanes where batch_id = of_batch order by id for update);
        exit when cardinality(lane_ids) = (select count(*) from lanes where batch_id = of_batch);
    end loop;
    perform lock_above(lane_ids);
    select * into known from batches where id = of_batch for update;
    if known.id is null then
        raise exception 'There is no batch %.', of_batch using errcode = 'BM005';
    end if;
    return known;
end $$;
