-- What attempts record besides their outcomes, in the same transaction: the amounts that they used, which are added
-- to the totals, and the files that they release.
--
-- Workers call the overloads below only if an attempt of the block recorded something. All other blocks go to the
-- functions without `records`, so they pay nothing.

-- What an attempt that holds its job has recorded.
do $$ begin
    create type attempt_record as (
        job_id bigint, tenant text, task text, batch_id uuid, position integer, amounts json, released uuid[]);
exception when duplicate_object then null;
end $$;

-- As `finish` without `records`. These are [{"id", "fence", "amounts": {name: amount}, "released": [file]}], for the
-- attempts that recorded something.
create or replace function finish(
    ids bigint[], fences bigint[], kinds text[], details json, progress json, lanes bigint[], records json
) returns bigint[]
language plpgsql
set search_path = batchmill, pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
    held attempt_record[] := records_of_holders(records);
    refused bigint[] := finish(ids, fences, kinds, details, progress, lanes);
begin
    perform add_records(held, refused);
    return refused;
end $$;

-- As `finish_and_claim` without `records`.
create or replace function finish_and_claim(
    ids bigint[], fences bigint[], kinds text[], details json, progress json, lanes bigint[], records json,
    worker bigint, tasks text[], wants integer[], want integer, prefetch integer, since xid8,
    last_tenants text[], last_tenant text, seed bigint
) returns json
language plpgsql
set search_path = batchmill, pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
    held attempt_record[] := records_of_holders(records);
    answer json := finish_and_claim(ids, fences, kinds, details, progress, lanes, worker, tasks, wants, want,
        prefetch, since, last_tenants, last_tenant, seed);
begin
    perform add_records(held, array(select json_array_elements_text(answer -> 'refused')::bigint));
    return answer;
end $$;

-- The records of those attempts that hold their jobs: at most one attempt of each job. This runs before the outcomes
-- are recorded, because that removes the fence and may change the task. No lock is needed: while an attempt holds its
-- job, the columns that are read here do not change, and if it loses the job before its outcome is recorded, the
-- outcome is refused.
create or replace function records_of_holders(records json) returns attempt_record[]
language plpgsql as $$
begin
    return array(
        select row (j.id, j.tenant, j.task, j.batch_id, j.position, r.amounts, r.released)::attempt_record
        from json_to_recordset(records) as r (id bigint, fence bigint, amounts json, released uuid[])
        cross join lateral (
            select id, tenant, task, batch_id, position from jobs
            where jobs.id = r.id and jobs.fence = r.fence offset 0) j);
end $$;

-- Adds the records of the attempts whose outcomes were not refused. A job is in `refused` only if no attempt of it was
-- recorded, so its id is enough.
create or replace function add_records(held attempt_record[], refused bigint[]) returns void
language plpgsql as $$
declare
    recorded attempt_record[] := array(select h from unnest(held) h where h.job_id <> all (refused));
begin
    perform release_files(recorded);
    perform add_usage(recorded);
end $$;

-- Queues the files that attempts release. The caller holds lanes, limits and batches, and a submit in an open
-- transaction may hold the files. So this waits for nothing, and apply_releases() decides later.
create or replace function release_files(recorded attempt_record[]) returns void
language plpgsql as $$
begin
    insert into artifact_releases (artifact_id, tenant, batch_id, job_id, position)
    select file, tenant, batch_id, job_id, position from unnest(recorded) cross join lateral unnest(released) as file;
    if found then
        perform pg_notify('batchmill', 'upkeep');
    end if;
end $$;

-- Adds up amounts. The totals are the last rows that a transaction locks, those of batches before those of days, each
-- in the order of its key.
create or replace function add_usage(recorded attempt_record[]) returns void
language plpgsql as $$
begin
    insert into batch_usage as total (batch_id, task, name, tenant, amount)
    select batch_id, task, a.key, min(tenant), sum(a.value::numeric)
    from unnest(recorded) cross join lateral json_each_text(amounts) a
    where batch_id is not null
    group by batch_id, task, a.key order by batch_id, task, a.key
    on conflict (batch_id, task, name) do update set amount = total.amount + excluded.amount;
    insert into daily_usage as total (tenant, day, task, name, amount)
    select tenant, day_of(clock()), task, a.key, sum(a.value::numeric)
    from unnest(recorded) cross join lateral json_each_text(amounts) a
    group by tenant, task, a.key order by tenant, task, a.key
    on conflict (tenant, day, task, name) do update set amount = total.amount + excluded.amount;
end $$;
