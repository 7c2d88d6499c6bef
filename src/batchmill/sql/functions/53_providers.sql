-- Limits inside handlers: attempts hold slots of a provider, and wait for them.
--
-- The row lock of the provider serialises all changes of its holds. A hold counts while its attempt runs on a worker
-- that is not lost or stopped, so the end of an attempt frees its slots without a statement.

-- Declares the limits of a provider with the values in a worker's code.
create or replace function declare_provider(
    provider_name text, slots integer, rate integer, period double precision
) returns void
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    changed bigint;
begin
    insert into providers as p (name, declared_slots, declared_rate, declared_period)
    values (provider_name, slots, rate, period)
    on conflict (name) do update set declared_slots = excluded.declared_slots,
        declared_rate = excluded.declared_rate, declared_period = excluded.declared_period
    where (p.declared_slots, p.declared_rate, p.declared_period)
        is distinct from (excluded.declared_slots, excluded.declared_rate, excluded.declared_period)
    returning id into changed;
    if changed is not null then
        perform grant_slots(changed, null);
    end if;
end $$;

-- What `set_limit` does for the name of a provider.
create or replace function set_provider(
    provider_name text, slots integer, rate integer, period double precision, paused boolean, reset boolean
) returns limits
language plpgsql as $$
#variable_conflict use_column
declare
    changed providers;
begin
    insert into providers as p (name, set_slots, set_rate, set_period, paused)
    values (provider_name, set_provider.slots, set_provider.rate, set_provider.period,
        coalesce(set_provider.paused, false))
    on conflict (name) do update set
        set_slots = case when set_provider.reset then null else coalesce(set_provider.slots, p.set_slots) end,
        set_rate = case when set_provider.reset then null else coalesce(set_provider.rate, p.set_rate) end,
        set_period = case when set_provider.reset then null else coalesce(set_provider.period, p.set_period) end,
        paused = coalesce(set_provider.paused, p.paused)
    returning * into changed;
    perform grant_slots(changed.id, null);
    return as_limit(changed);
end $$;

-- Whether the attempt of a hold still runs.
create or replace function is_current(h holds) returns boolean
language sql stable
return exists (select from jobs j where j.id = h.job_id and j.fence = h.fence)
    and exists (select from workers w where w.id = h.worker_id and w.state in ('live', 'draining'));

-- A provider in the form of the other limits, for lists. `parked` is true if attempts wait for it.
create or replace function as_limit(p providers) returns limits
language sql stable
return jsonb_populate_record(null::limits, to_jsonb(p) || jsonb_build_object(
    'running', (
        select count(*) from holds h
        where h.provider_id = p.id and h.granted_at is not null and is_current(h)),
    'parked', exists (select from holds h where h.provider_id = p.id and h.granted_at is null)));

create or replace function provider_limits() returns setof limits
language sql stable
begin atomic
    select l.* from providers p cross join lateral as_limit(p) l;
end;

-- One call for all attempts of a worker: frees the holds with the numbers `freed`, adds a hold for each of `numbers`,
-- and grants free slots. Returns the numbers that this worker holds now, those that were refused, the names that are
-- not known, and the seconds until a rate lets the next attempt start.
create or replace function hold_slots(
    worker bigint, freed bigint[], numbers bigint[], names text[], job_ids bigint[], fences bigint[]
) returns json
language plpgsql
set search_path = batchmill, pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
set plan_cache_mode = force_generic_plan as $$
declare
    provider_ids bigint[];
begin
    -- Marking a worker lost locks its row `for update`. This lock conflicts only with that one, so heartbeats and
    -- claims of the worker go on.
    perform from workers w where w.id = worker and w.state in ('live', 'draining') for key share;
    if not found then
        raise exception 'Worker % is not live.', worker using errcode = 'BM010';
    end if;
    provider_ids := array(
        select id from providers where name = any (names)
        union
        select provider_id from holds h
        where h.worker_id = worker and (h.granted_at is null or h.number = any (freed))
        order by 1);
    perform from unnest(provider_ids) as p (id)
    cross join lateral (select from providers where providers.id = p.id for update) held;
    -- The slots of a worker whose lease has lapsed become free now, not when the upkeep runs.
    perform lose_workers();
    delete from holds h where h.worker_id = worker and h.number = any (freed);
    insert into holds (worker_id, number, provider_id, job_id, fence)
    select worker, a.number, p.id, a.job_id, a.fence
    from unnest(numbers, names, job_ids, fences) with ordinality as a (number, name, job_id, fence, place)
    cross join lateral (select id from providers where providers.name = a.name offset 0) p
    cross join lateral (select from jobs j where j.id = a.job_id and j.fence = a.fence offset 0) running
    order by a.place
    on conflict do nothing;
    perform grant_slots(id, worker) from unnest(provider_ids) as id;
    return json_build_object(
        'granted', array(
            select h.number from holds h where h.worker_id = worker and h.granted_at is not null),
        'refused', array(
            select a.number from unnest(numbers) as a (number)
            where (select true from holds h where h.worker_id = worker and h.number = a.number) is null),
        'unknown', array(select unnest(names) except select name from providers),
        'wait', (
            select min(opens_in(p, clock())) from providers p where p.id = any (provider_ids)));
end $$;

-- Gives the free slots of a provider to the attempts that have waited longest, and wakes up their workers, except
-- `caller`. The calling function holds the lock on the provider's row.
create or replace function grant_slots(of_provider bigint, caller bigint) returns void
language plpgsql as $$
declare
    moment timestamptz := clock();
    provider providers;
    granted integer;
    others bigint[];
begin
    delete from holds h where h.provider_id = of_provider and h.granted_at is not null and not is_current(h);
    select * into provider from providers where id = of_provider;
    with first as (
        select h.worker_id, h.number from holds h
        where h.provider_id = of_provider and h.granted_at is null and is_current(h)
        order by h.ticket limit free_slots(provider, moment)
    ), changed as (
        update holds h set granted_at = moment from first
        where h.worker_id = first.worker_id and h.number = first.number
        returning h.worker_id
    )
    select count(*), array_agg(distinct worker_id) filter (where worker_id is distinct from caller)
    into granted, others from changed;
    if granted > 0 and provider.rate is not null then
        update providers p set started_at = s.at, started = s.n
        from add_starts(provider.started_at, provider.started, provider.period, granted, moment) s
        where p.id = of_provider;
    end if;
    perform pg_notify('batchmill', topic('grants:' || worker_id)) from unnest(others) as worker_id;
end $$;

-- How many more attempts may start now.
create or replace function free_slots(p providers, moment timestamptz) returns integer
language sql stable
return greatest(0, least(
    coalesce(p.slots - (
        select count(*)::integer from holds h
        where h.provider_id = p.id and h.granted_at is not null), 2147483647),
    coalesce(p.rate - (
        select coalesce(sum(n), 0)::integer from unnest(p.started_at, p.started) as s (at, n)
        where at > moment - make_interval(secs => p.period)), 2147483647)));

-- The seconds until a rate that is used up has room again, or null.
create or replace function opens_in(p providers, moment timestamptz) returns double precision
language sql stable
return (
    select date_part('epoch', min(s.at) - moment) + p.period
    from unnest(p.started_at, p.started) as s (at, n)
    where s.at > moment - make_interval(secs => p.period)
    having sum(s.n) >= p.rate);
