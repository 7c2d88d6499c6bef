-- Chooses the lanes of a claim: those with work and room. Tenants take turns, regardless of how many lanes
-- they have.

-- Locks and returns lanes with work and room. In each task tenants take turns, and the lanes of a tenant that
-- have waited longest come first. The number of lanes is half the room for jobs, because most lanes have
-- several jobs and a locked lane is unavailable to other workers. If tasks have priorities, there are enough lanes
-- of each task to fill the room, even if each has one job. `ending` are lanes whose slots are about to become free.
create or replace function open_lanes(
    of_tasks text[], wants integer[], room integer, last_tenants text[], ending bigint[] default '{}'
) returns bigint[]
language plpgsql as $$
declare
    moment timestamptz := clock();
    most integer := least(case when have_priorities() then room else (room + 1) / 2 end, 200);
begin
    perform unpark_lanes(of_tasks, last_tenants, ending, moment);
    perform wake_lanes(of_tasks, moment);
    return array(
        select l.id from unnest(of_tasks, wants, last_tenants) as w (task, want, last_tenant)
        -- Select a few more tenants than needed, because other workers may hold the lanes of some.
        cross join lateral (select open_tenants(w.task, w.last_tenant, most + 3) as ids offset 0) tenants
        cross join lateral (
            select l.id from unnest(tenants.ids) as t (tenant)
            cross join lateral (
                select id from lanes
                where lanes.task = w.task and lanes.tenant = t.tenant and is_open and is_due
                order by ready_at limit (most - 1) / least(cardinality(tenants.ids), most) + 1
                for update skip locked) l
            limit least(w.want, most)) l);
end $$;

create or replace function have_priorities() returns boolean
language sql stable
return exists (select from tasks where priority <> 0);

-- The tenants with work in open lanes of a task, in the order of their turns. Usually there is only one.
create or replace function open_tenants(of_task text, last_tenant text, most integer) returns text[]
language plpgsql as $$
declare
    first text := (
        select tenant from lanes where task = of_task and is_open and is_due order by tenant limit 1);
begin
    if first is null then
        return '{}';
    elsif first = (
        select tenant from lanes where task = of_task and is_open and is_due order by tenant desc limit 1)
    then
        return array[first];
    end if;
    return next_tenants(of_task, null, coalesce(last_tenant, ''), most);
end $$;

-- Marks lanes as due when their time has come.
create or replace function wake_lanes(of_tasks text[], moment timestamptz) returns void
language plpgsql as $$
begin
    if (select min(l.ready_at) from unnest(of_tasks) as t (task)
        cross join lateral (
            select ready_at from lanes
            where lanes.task = t.task and is_open and not is_due and ready_at is not null
            order by ready_at limit 1) l) <= moment
    then
        update lanes set is_due = true where id = any (array(
            select l.id from unnest(of_tasks) as t (task)
            cross join lateral (
                select id from lanes
                where lanes.task = t.task and is_open and not is_due and ready_at <= moment
                order by ready_at limit 500 for update skip locked) l));
    end if;
end $$;

-- The tenants with work in open lanes of a task, or in lanes parked behind a limit. They come in the order of
-- their names, starting after `last_tenant` and wrapping around; at most `most`. Each tenant costs one index
-- lookup, regardless of how many lanes it has.
create or replace function next_tenants(of_task text, behind bigint, last_tenant text, most integer) returns text[]
language plpgsql as $$
declare
    tenants text[] := '{}';
    place text := last_tenant;
    is_round boolean := last_tenant = '';
    next text;
begin
    while cardinality(tenants) < most loop
        if behind is null then
            next := (
                select tenant from lanes
                where task = of_task and is_open and is_due and tenant > place
                order by tenant limit 1);
        else
            next := (
                select tenant from lanes
                where blocked_by = behind and task = of_task and tenant > place
                order by tenant limit 1);
        end if;
        if next is null and not is_round then
            place := '';
            is_round := true;
            continue;
        end if;
        exit when next is null or (is_round and last_tenant <> '' and next > last_tenant);
        tenants := tenants || next;
        place := next;
    end loop;
    return tenants;
end $$;

-- Unparks lanes whose limit has room, or will have room once the jobs of `ending` lanes have ended. If it
-- unparks too many, some park again.
create or replace function unpark_lanes(of_tasks text[], last_tenants text[], ending bigint[], moment timestamptz)
returns void
language plpgsql as $$
declare
    opening record;
    limit_ids bigint[] := '{}';
    tasks text[] := '{}';
    tenants text[] := '{}';
    counts integer[] := '{}';
    next text[];
begin
    if not exists (select from limits where parked) then
        return;
    end if;
    for opening in select * from parked_lanes(of_tasks, ending, moment) loop
        next := case when opening.is_shared
            then next_tenants(opening.task, opening.limit_id,
                coalesce(last_tenants[array_position(of_tasks, opening.task)], ''), opening.room)
            else array[opening.tenant] end;
        -- Another worker may have unparked the lanes meanwhile.
        continue when next = '{}';
        limit_ids := limit_ids || array_fill(opening.limit_id, array[cardinality(next)]);
        tasks := tasks || array_fill(opening.task, array[cardinality(next)]);
        tenants := tenants || next;
        counts := counts || array_fill(
            ceil(opening.room::numeric / cardinality(next))::integer, array[cardinality(next)]);
    end loop;
    if limit_ids <> '{}' then
        update lanes set blocked_by = null where id = any (array(
            select l.id from unnest(limit_ids, tasks, tenants, counts) as p (limit_id, task, tenant, n)
            cross join lateral (
                select id from lanes
                where blocked_by = p.limit_id and lanes.task = p.task and lanes.tenant = p.tenant
                order by ready_at limit p.n
                for update skip locked) l));
    end if;
end $$;

-- The limits that have room for lanes parked behind them, by task, with the first tenant of these lanes.
create or replace function parked_lanes(of_tasks text[], ending bigint[], moment timestamptz)
returns table (limit_id bigint, task text, room integer, tenant text, is_shared boolean)
language sql stable
begin atomic
    with ends as materialized (
        select n.name, count(*)::integer as lanes from lanes l
        cross join lateral limit_names(l.task, l.tenant, l.batch_id, l.key) n
        where l.id = any (ending) and l.is_busy
        group by n.name
    ), opening as materialized (
        select m.id, least(free_slots(m, moment, coalesce(
            (select ends.lanes from ends where ends.name = m.name), 0)), 500) as room
        from limits m where m.parked
    )
    select o.id, t.task, o.room, f.tenant, f.tenant <> (
        select l.tenant from lanes l where l.blocked_by = o.id and l.task = t.task
        order by l.tenant desc limit 1)
    from opening o cross join unnest(of_tasks) as t (task)
    cross join lateral (
        select l.tenant from lanes l where l.blocked_by = o.id and l.task = t.task
        order by l.tenant limit 1) f
    where o.room > 0;
end;
