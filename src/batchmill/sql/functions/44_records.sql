-- What attempts record besides their outcomes, in the same transaction: the amounts that they used, which are added
-- to the totals, and the files that they release.
--
-- Workers call the overloads below only if an attempt of the block recorded something. All other blocks go to the
-- functions without `records`, so they pay nothing.

-- An amount of an attempt that holds its job.
do $$ begin
    create type used_amount as (
        job_id bigint, tenant text, task text, batch_id uuid, name text, amount numeric);
exception when duplicate_object then null;
end $$;

-- A file that such an attempt releases.
do $$ begin
    create type released_file as (
        job_id bigint, tenant text, batch_id uuid, position integer, artifact_id uuid);
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
    used used_amount[] := used_amounts(records);
    files released_file[] := released_files(records);
    refused bigint[] := finish(ids, fences, kinds, details, progress, lanes);
begin
    perform release_files(files, refused);
    perform add_usage(used, refused);
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
    used used_amount[] := used_amounts(records);
    files released_file[] := released_files(records);
    refused bigint[];
    answer json := finish_and_claim(ids, fences, kinds, details, progress, lanes, worker, tasks, wants, want,
        prefetch, since, last_tenants, last_tenant, seed);
begin
    refused := array(select json_array_elements_text(answer -> 'refused')::bigint);
    perform release_files(files, refused);
    perform add_usage(used, refused);
    return answer;
end $$;

-- The amounts of those attempts that hold their jobs. This runs before the outcomes are recorded, because that removes
-- the fence and may change the task. No lock is needed: while an attempt holds its job, the columns that are read here
-- do not change, and if it loses the job before its outcome is recorded, the outcome is refused.
create or replace function used_amounts(records json) returns used_amount[]
language plpgsql as $$
begin
    return array(
        select row (j.id, j.tenant, j.task, j.batch_id, a.key, a.value::numeric)::used_amount
        from json_to_recordset(records) as u (id bigint, fence bigint, amounts json)
        cross join lateral (
            select id, tenant, task, batch_id from jobs where jobs.id = u.id and jobs.fence = u.fence offset 0) j
        cross join lateral json_each_text(u.amounts) a);
end $$;

-- Adds the amounts of the attempts whose outcomes were not refused. The totals are the last rows that a transaction
-- locks, those of batches before those of days, each in the order of its key.
create or replace function add_usage(used used_amount[], refused bigint[]) returns void
language plpgsql as $$
begin
    insert into batch_usage as total (batch_id, task, name, tenant, amount)
    select batch_id, task, name, min(tenant), sum(amount) from unnest(used)
    where batch_id is not null and job_id <> all (refused)
    group by batch_id, task, name order by batch_id, task, name
    on conflict (batch_id, task, name) do update set amount = total.amount + excluded.amount;
    insert into daily_usage as total (tenant, day, task, name, amount)
    select tenant, day_of(clock()), task, name, sum(amount) from unnest(used)
    where job_id <> all (refused)
    group by tenant, task, name order by tenant, task, name
    on conflict (tenant, day, task, name) do update set amount = total.amount + excluded.amount;
end $$;

-- The files that attempts release, for those attempts that hold their jobs. This runs before the outcomes are recorded,
-- as above.
create or replace function released_files(records json) returns released_file[]
language plpgsql as $$
begin
    return array(
        select row (j.id, j.tenant, j.batch_id, j.position, a.id)::released_file
        from json_to_recordset(records) as r (id bigint, fence bigint, released uuid[])
        cross join lateral (
            select id, tenant, batch_id, position from jobs
            where jobs.id = r.id and jobs.fence = r.fence offset 0) j
        cross join lateral unnest(r.released) as a (id));
end $$;

-- Gives up the files that nothing needs any more, unless the outcome of the attempt was refused. A job needs the files
-- that it wrote, and those that its item named when it was submitted.
create or replace function release_files(files released_file[], refused bigint[]) returns void
language plpgsql as $$
declare
    ids uuid[];
begin
    if files = '{}' then
        return;
    end if;
    ids := array(
        select id from artifacts where state = 'kept' and id in (select artifact_id from unnest(files))
        order by id for update);
    insert into artifact_releases (artifact_id, tenant, batch_id, job_id)
    select a.id, a.tenant, f.batch_id, f.job_id
    from unnest(files) f join artifacts a on a.id = f.artifact_id and a.tenant = f.tenant
    where a.id = any (ids) and f.job_id <> all (refused) and (a.job_id = f.job_id or exists (
        select from artifact_uses u
        where u.artifact_id = a.id and u.items @> f.position
          and (u.batch_id = f.batch_id or u.job_id = f.job_id)))
    on conflict do nothing;
    update artifacts a set state = 'gone', collect_at = clock()
    where id = any (ids) and exists (select from artifact_releases r where r.artifact_id = a.id)
      and (a.job_id is null or exists (
        select from artifact_releases r where r.artifact_id = a.id and r.job_id = a.job_id))
      and not exists (
        select from artifact_uses u
        where u.artifact_id = a.id and coalesce((
            select sum(upper(part) - lower(part)) from unnest(u.items) part), 2147483647) > (
            select count(*) from artifact_releases r
            where r.artifact_id = a.id and (r.batch_id = u.batch_id or r.job_id = u.job_id)));
    if found then
        perform pg_notify('batchmill', 'upkeep');
    end if;
end $$;
