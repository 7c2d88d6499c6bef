-- The upkeep: periodic work that one of the workers does.

-- Elects a worker to do the upkeep, or renews its lead. The lead ends when the worker stops renewing it, or
-- when the worker's own lease lapses. Everything in the upkeep is safe to do twice, so a change of leader at
-- any point does no harm.
create or replace function lead(worker bigint, seconds double precision) returns boolean
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
begin
    insert into leases (name, worker_id, until)
    values ('upkeep', worker, clock() + make_interval(secs => seconds))
    on conflict (name) do update set worker_id = excluded.worker_id, until = excluded.until
    where leases.worker_id = worker or leases.until < clock() or not exists (
        select from workers w where w.id = leases.worker_id
          and w.state in ('live', 'draining') and w.lease_until > clock());
    return found;
end $$;

-- Returns the work that is due now, or null if the worker does not lead.
create or replace function look_after(worker bigint, seconds double precision) returns json
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    garbage boolean;
begin
    if not lead(worker, seconds) then
        return null;
    end if;
    garbage := has_garbage();
    return json_build_object(
        'now', clock(),
        'lapsed', lapsed_jobs(),
        'garbage', garbage,
        -- Processes of schema versions up to 10 read this name.
        'litter', garbage,
        'erasing', exists (select from erasures),
        'due', (
            select coalesce(json_agg(due), '[]') from (
                select tenant, name, cron, timezone, missed, next_at from schedules
                where not paused and next_at <= clock() order by next_at limit 100) due));
end $$;

-- Marks workers lost whose lease has lapsed.
create or replace function lose_workers() returns void
language plpgsql as $$
begin
    -- A claim that is about to commit holds its worker's row, possibly for long if the client does not read
    -- the answer. The next call handles that worker.
    update workers set state = 'lost', idle = false
    where id = any (array(
        select id from workers where state in ('live', 'draining') and lease_until < clock()
        for update skip locked));
end $$;

-- Running jobs of workers that are lost or have stopped. A worker without running jobs becomes settled,
-- because it starts no more jobs.
create or replace function lapsed_jobs() returns json
language plpgsql as $$
declare
    gone bigint[];
    lapsed json;
begin
    perform lose_workers();
    gone := array(select id from workers where not is_settled and state in ('lost', 'stopped'));
    if gone = '{}' then
        return '[]';
    end if;
    select json_agg(job) into lapsed from (
        select json_build_object('id', j.id, 'fence', j.fence, 'lane', j.lane_id,
            'task', j.task, 'attempt', j.attempt) as claim, t.retry
        from running_jobs() j left join tasks t on t.name = j.task
        where j.worker_id = any (gone) limit 500) job;
    if lapsed is null then
        update workers set is_settled = true where id = any (gone);
    end if;
    return coalesce(lapsed, '[]');
end $$;

-- Deletes expired rows. Unfinished batches have to be cancelled first.
create or replace function expire(today date) returns json
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    deleted integer;
begin
    with gone as (
        delete from batches where id in (
            select id from batches where expires_at < clock() and finished_at is not null
            limit 10000 for update skip locked)
        returning id
    ), of_feeds as (
        delete from feed_batches where batch_id in (select id from gone)
    ), left_out as (
        delete from duplicates where batch_id in (select id from gone)
    ), used as (
        delete from batch_usage where batch_id in (select id from gone)
    ), named as (
        delete from artifact_uses where (artifact_id, batch_id, block) in (
            select artifact_id, batch_id, block from artifact_uses where batch_id in (select id from gone)
            for update skip locked)
    )
    select count(*) into deleted from gone;
    delete from requests where expires_at < clock();
    delete from notifications where expires_at < clock();
    -- A batch that is still being cancelled keeps its partitions until it has finished.
    return json_build_object('deleted', deleted, 'dropped', drop_expired_partitions(
        least(today, (select day_of(min(expires_at)) from batches))));
end $$;

-- Deletes rows that are no longer needed, and repairs the effects of rare races.
create or replace function tidy() returns void
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
begin
    delete from workers w
    where is_settled and lease_until < clock() - interval '30 days';
    delete from worker_slots s
    where not exists (select from workers w where w.id = s.worker_id and w.state in ('live', 'draining'));
    -- A worker whose row was deleted counts as lost.
    insert into workers (id, name, version, tasks, concurrency, state, started_at, lease_until)
    overriding system value
    select distinct worker_id, 'unknown', '', '{}'::text[], 1, 'lost', clock(), clock()
    from running_jobs() j where not exists (select from workers w where w.id = j.worker_id);
    delete from lanes l where id in (
        select id from lanes c
        where running = 0 and case when batch_id is null then ready_at is null else not exists (
            select from batches b where b.id = c.batch_id and b.finished_at is null) end
        limit 1000 for update skip locked)
      and not exists (select from jobs j where j.lane_id = l.id);
    update lanes l set slots = lane_slots(l.task, l.batch_id)
    where id in (
        select id from lanes
        where batch_id is not null and slots is distinct from lane_slots(task, batch_id)
        for update skip locked);
    delete from statistics where minute < clock() - interval '30 days';
    perform tidy_feeds();
    delete from daily_usage where day < day_of(clock()) - 400;
    -- Grants ignore these holds, and remove them if they see them.
    delete from holds where (worker_id, number) in (
        select worker_id, number from holds h where not is_current(h) limit 1000 for update skip locked);
end $$;

-- Repairs limits that a batch created while their template changed, and drops unused limits that templates
-- created. This is separate from `tidy`, which locks lanes: the lock that this function needs comes before
-- lanes.
create or replace function tidy_limits() returns void
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
begin
    if exists (select from limits m where is_idle(m) or is_outdated(m)) then
        perform hold_limits_still();
        delete from limits m where is_idle(m);
        perform spread_template(template) from (
            select distinct template_of(m.name) as template from limits m where is_outdated(m)) changed;
    end if;
end $$;

create or replace function is_outdated(m limits) returns boolean
language sql stable
return exists (
    select from declared_by(template_of(m.name)) t
    where (m.declared_slots, m.declared_rate, m.declared_period, m.declared_paused)
        is distinct from (t.slots, t.rate, t.period, t.paused));

create or replace function is_idle(m limits) returns boolean
language sql stable
return template_of(m.name) is not null and m.running = 0 and not m.parked and not m.paused
    and m.set_slots is null and m.set_rate is null and not exists (
        select from unnest(m.started_at) as at where at > clock() - make_interval(secs => m.period));

-- Aggregates the minutes that have passed since the last call.
create or replace function add_statistics() returns void
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    upto timestamptz := date_trunc('minute', clock());
    since timestamptz := coalesce((select max(minute) + interval '1 minute' from statistics),
        upto - interval '1 hour');
begin
    insert into statistics (minute, task, state, code, jobs, wait_seconds, run_seconds)
    select date_trunc('minute', finished_at), task, state, coalesce(error ->> 'code', ''), count(*),
        coalesce(sum(extract(epoch from started_at - run_at)), 0),
        coalesce(sum(extract(epoch from finished_at - started_at)), 0)
    from finished where finished_at >= since and finished_at < upto
    group by 1, 2, 3, 4
    on conflict do nothing;
end $$;
