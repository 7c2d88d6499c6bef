-- Rows of artifacts. The order of locks is: jobs, artifacts, usage, groups. A transaction that holds a group
-- waits for no other lock. A transaction that changes a use of an artifact holds the artifact; expire() in
-- 61_upkeep.sql skips uses that are locked instead.

-- The tenants `club`, `club/ann` and `club/bob` are one group. The quota of `club` bounds the bytes that they
-- store together.
create or replace function group_of(of_tenant text) returns text
language sql immutable
return split_part(of_tenant, '/', 1);

-- Adds `more` bytes, which may be negative, to the count of stored bytes of a tenant. Returns the new count.
create or replace function count_stored(of_tenant text, more bigint) returns bigint
language sql
begin atomic
    insert into usage (tenant, minute, day, stored_bytes)
    values (of_tenant, date_trunc('minute', clock()), day_of(clock()), greatest(more, 0))
    on conflict (tenant) do update set stored_bytes = usage.stored_bytes + more
    returning stored_bytes;
end;

-- The same for a group.
create or replace function count_group(of_name text, more bigint) returns bigint
language sql
begin atomic
    insert into storage_groups (name, stored_bytes) values (of_name, greatest(more, 0))
    on conflict (name) do update set stored_bytes = storage_groups.stored_bytes + more
    returning stored_bytes;
end;

create or replace function add_artifact(
    new_id uuid, of_tenant text, of_kind text, of_batch uuid, of_job bigint, of_fence bigint, of_name text, of_type text,
    expiry timestamptz
) returns artifacts
language plpgsql as $$
declare
    moment timestamptz := clock();
    added artifacts;
begin
    insert into artifacts (id, tenant, kind, batch_id, job_id, fence, name, media_type, storage_key,
        created_at, written_at, expires_at)
    values (new_id, of_tenant, of_kind, of_batch, of_job, of_fence, of_name, of_type,
        concat_ws('.', format('%s/%s/%s', left(encode(sha256(convert_to(of_tenant, 'UTF8')), 'hex'), 16),
            to_char(moment at time zone 'UTC', 'YYYY'), new_id), of_fence),
        moment, moment, expiry)
    returning * into added;
    perform refuse_erased(of_tenant);
    return added;
end $$;

-- Begins an uploaded file. It expires after a day unless a batch takes it. A caller that chooses the id can
-- give the file up even if it does not learn whether this call succeeded.
create or replace function begin_input(
    of_tenant text, of_name text, of_type text, new_id uuid
) returns artifacts
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
begin
    return add_artifact(new_id, coalesce(acting_tenant(), of_tenant), 'input', null, null, null, of_name, of_type,
        clock() + interval '1 day');
end $$;

-- Begins a file that an attempt writes. Returns null if the attempt is no longer the newest.
create or replace function begin_output(
    of_job bigint, of_fence bigint, of_name text, of_type text, new_id uuid
) returns artifacts
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    job jobs;
begin
    select * into job from jobs where id = of_job and fence = of_fence for share;
    if job.id is null then
        return null;
    end if;
    return add_artifact(new_id, job.tenant, 'output', job.batch_id, of_job, of_fence, of_name, of_type, coalesce(
        (select expires_at from batches where id = job.batch_id),
        (job.expires_on + 1)::timestamp at time zone 'UTC'));
end $$;

-- Reserves between `at_least` and `at_most` bytes for a file that is being written. The bounds are those on
-- the tenant (its quota and `bound`) and on its group. The bound with the least room applies; `used` and
-- `most` describe it. The file reserves a tenth of the remaining room in advance, so that other files get
-- room too. If there is too little room, nothing changes. `granted` is null if the file is no longer being
-- written.
create or replace function grow_artifact(
    of_id uuid, at_least bigint, at_most bigint, bound bigint, out granted bigint, out used bigint, out most bigint
)
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    file artifacts;
    of_tenant bigint;
    of_group bigint;
begin
    select * into file from artifacts where id = of_id and state = 'writing' and is_own(tenant) for update;
    if file.id is null then
        return;
    end if;
    of_tenant := count_stored(file.tenant, 0);
    of_group := count_group(group_of(file.tenant), 0);
    select b.used, b.most into used, most from (values
        (of_tenant, least(bound, (quota_of(file.tenant)).storage_bytes)),
        (of_group, (select storage_bytes from quotas where tenant = group_of(file.tenant)))) as b (used, most)
    order by b.most - b.used limit 1;
    if used + at_least - file.size > most then
        granted := file.size;
        return;
    end if;
    granted := least(at_most, greatest(at_least, coalesce(file.size + (most - used) / 10, at_most)));
    used := used + granted - file.size;
    perform count_stored(file.tenant, granted - file.size);
    perform count_group(group_of(file.tenant), granted - file.size);
    update artifacts set size = granted, written_at = clock() where id = of_id;
end $$;

-- Ends the writing of a file; all its bytes are durable. An input is kept from now on, an output once its
-- attempt completes or advances. Returns null if the file is no longer expected.
create or replace function end_artifact(of_id uuid, of_size bigint, of_sha256 text) returns artifacts
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    file artifacts;
    before bigint;
begin
    select * into file from artifacts where id = of_id and is_own(tenant);
    if file.kind = 'output' then
        perform from jobs where id = file.job_id and fence = file.fence for share;
        if not found then
            return null;
        end if;
    end if;
    select size into before from artifacts where id = file.id and state = 'writing' for update;
    if not found then
        return null;
    end if;
    update artifacts
    set state = case kind when 'input' then 'kept' else 'stored' end, size = of_size, sha256 = of_sha256,
        written_at = clock(),
        expires_at = case kind when 'input' then clock() + interval '1 day' else expires_at end
    where id = of_id
    returning * into file;
    perform count_stored(file.tenant, of_size - before);
    perform count_group(group_of(file.tenant), of_size - before);
    return file;
end $$;

-- Gives up a file. Returns its storage key, so that the writer can remove the bytes now.
create or replace function give_up_artifact(of_id uuid) returns text
language sql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
    update artifacts set state = 'gone', collect_at = clock()
    where id = of_id and is_own(tenant)
    returning storage_key
$$;

-- Gives up a kept file at the request of its owner. Returns its storage key.
create or replace function delete_artifact(of_id uuid) returns text
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    file artifacts;
begin
    select * into file from artifacts where id = of_id and state = 'kept' and is_own(tenant) for update;
    if file.id is null then
        raise exception 'There is no artifact %.', of_id using errcode = 'BM005';
    end if;
    if is_needed(file) then
        raise exception 'Artifact % is used by a batch or job that is not finished. Cancel that first.', of_id
            using errcode = 'BM006';
    end if;
    return give_up_artifact(of_id);
end $$;

-- Whether an unfinished batch or job made the file or uses it.
create or replace function is_needed(file artifacts) returns boolean
language sql stable
return exists (
    select from batches b where b.finished_at is null and b.id in (
        select file.batch_id union all
        select batch_id from artifact_uses where artifact_id = file.id)
) or exists (
    select from jobs j where j.id in (
        select file.job_id union all
        select job_id from artifact_uses where artifact_id = file.id));

-- Deletes the rows of files whose bytes have been removed.
create or replace function forget_artifacts(of_ids uuid[]) returns void
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    tenants text[];
    sizes bigint[];
begin
    perform from artifacts where id = any (of_ids) order by id for update;
    with forgotten as (
        delete from artifacts where id = any (of_ids) and state = 'gone' and is_own(tenant)
        returning tenant, size
    )
    select array_agg(tenant), array_agg(size) into tenants, sizes from forgotten;
    perform count_freed(tenants, sizes);
end $$;

-- Frees what files have reserved whose attempts ended while they were being written. Their bytes are removed an hour
-- later, because their writers may still be active. A writer can reserve nothing more.
create or replace function free_reservations(most integer) returns void
language plpgsql as $$
declare
    tenants text[];
    sizes bigint[];
begin
    with freed as (
        update artifacts a set size = 0
        from (
            select id, size from artifacts where collect_at > clock() and sha256 is null and size > 0
            order by id limit most for update skip locked) before
        where a.id = before.id
        returning a.tenant, before.size
    )
    select array_agg(tenant), array_agg(size) into tenants, sizes from freed;
    perform count_freed(tenants, sizes);
end $$;

-- Subtracts the sizes of files from the counts of their tenants and groups.
create or replace function count_freed(tenants text[], sizes bigint[]) returns void
language plpgsql as $$
declare
    freed record;
begin
    for freed in
        select is_group, name, sum(size)::bigint as bytes from unnest(tenants, sizes) as file (tenant, size)
        cross join lateral (values (false, tenant), (true, group_of(tenant))) as counted (is_group, name)
        group by is_group, name order by is_group, name
    loop
        if freed.is_group then
            perform count_group(freed.name, -freed.bytes);
        else
            perform count_stored(freed.name, -freed.bytes);
        end if;
    end loop;
end $$;

create or replace function count_download(of_id uuid) returns void
language sql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
    update artifacts set downloads = downloads + 1 where id = of_id and is_own(tenant)
$$;

-- The ids of artifacts in a JSON text: {"artifact": "…"} at any depth.
create or replace function named_artifacts(in_text text) returns uuid[]
language sql immutable
begin atomic
    select coalesce(array_agg(distinct found[1]::uuid), '{}')
    from regexp_matches(in_text, '"artifact"\s*:\s*"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"', 'gi') found
    where strpos(in_text, '"artifact"') > 0;
end;

-- Large batches may name one file in many items. Their positions are stored in blocks, each of bounded size.
create or replace function item_block(of_position integer) returns integer
language sql immutable
return of_position / 256;

-- Keeps artifacts as long as the batch or job that names them. `positions` are those of the items that name the
-- `ids`, or null for items without a job, which need no file. An artifact of another tenant counts as missing.
create or replace function take_artifacts(
    ids uuid[], positions integer[], of_tenant text, of_batch uuid, of_job bigint, expiry timestamptz
) returns void
language plpgsql as $$
declare
    taken uuid[] := array(
        select id from artifacts
        where id = any (ids) and tenant = of_tenant and state = 'kept' and expires_at > clock()
        order by id for update);
    missing uuid[] := array(select unnest(ids) except select unnest(taken));
begin
    if missing <> '{}' then
        raise exception 'There is no artifact %.', missing[1] using errcode = 'BM005';
    end if;
    update artifacts a
    set batch_id = case kind when 'input' then coalesce(batch_id, of_batch) else batch_id end,
        expires_at = case when kind = 'output' or exists (
            select from artifact_uses where artifact_id = a.id) then greatest(expires_at, expiry) else expiry end
    where id = any (taken);
    insert into artifact_uses as u (artifact_id, tenant, batch_id, job_id, block, items)
    select n.id, of_tenant, of_batch, of_job, b.block,
        coalesce(range_agg(int4range(n.at, n.at + 1)) filter (where n.at is not null), '{}')
    from unnest(ids, positions) as n (id, at)
    cross join lateral (select coalesce(item_block(n.at), 0) as block) b
    group by n.id, b.block
    on conflict (artifact_id, batch_id, job_id, block) do update set items = u.items + excluded.items;
end $$;

-- Whether all artifacts that a result names still exist.
create or replace function has_its_artifacts(result json, of_tenant text) returns boolean
language sql stable
return not exists (
    select from unnest(named_artifacts(result::text)) named where not exists (
        select from artifacts a where a.id = named and a.tenant = of_tenant and a.state = 'kept'
          and a.expires_at > clock()));

-- Whether any of these attempts may have written a file. Most have not, and their fences are close together,
-- so one index lookup is enough.
create or replace function may_have_outputs(fences bigint[]) returns boolean
language plpgsql as $$
declare
    first bigint;
    last bigint;
begin
    select min(fence), max(fence) into first, last from unnest(fences) as fence;
    return exists (
        select from artifacts where state in ('writing', 'stored') and fence between first and last);
end $$;

-- Keeps or gives up the files of attempts that have just ended. The caller holds the jobs, and writers need a
-- lock on the job too, so no file is missed. A file that is still being written is collected an hour later,
-- because its writer may still be active. The upkeep frees what it has reserved (free_reservations).
create or replace function settle_outputs(o outcomes, ended_ids bigint[], cancelled_ids bigint[]) returns void
language plpgsql as $$
declare
    doubtful bigint[] := array(
        select fence from artifacts where state in ('writing', 'stored') and fence = any (o.fences));
begin
    update artifacts a
    set state = case when f.keeps then 'kept' else 'gone' end,
        collect_at = case when not f.keeps
            then clock() + case a.state when 'writing' then interval '1 hour' else '0' end end
    from unnest(o.ids, o.fences, o.kinds) as s (id, fence, kind)
    cross join lateral (
        select id, state = 'stored' and s.kind in ('completed', 'advance')
            and (s.id = any (cancelled_ids)) is not true as keeps
        from artifacts where fence = s.fence and state in ('writing', 'stored') offset 0) f
    where s.fence = any (doubtful) and s.id = any (ended_ids) and a.id = any (array[f.id])
      and a.state in ('writing', 'stored');
end $$;

-- Keeps the artifacts that a checkpoint names, for later attempts. The caller holds the job.
create or replace function keep_for_checkpoint(of_job bigint, of_fence bigint, value json) returns void
language sql
begin atomic
    update artifacts set state = 'kept'
    where id = any (named_artifacts(value::text)) and job_id = of_job and fence = of_fence
      and state = 'stored';
end;

-- Gives up the artifacts of a batch that is being deleted, unless something else uses them, or the batch or job that
-- made them still exists. The artifacts are locked first: the later statements see the uses of every submit that held
-- one of them.
create or replace function give_up_artifacts_of(of_batch uuid) returns void
language plpgsql as $$
declare
    ids uuid[] := array(
        select id from artifacts where id in (
            select id from artifacts where batch_id = of_batch
            union
            select artifact_id from artifact_uses where batch_id = of_batch)
        order by id for update);
begin
    delete from artifact_uses where batch_id = of_batch;
    update artifacts a set state = 'gone', collect_at = clock()
    where id = any (ids) and state = 'kept'
      and not exists (select from artifact_uses where artifact_id = a.id)
      and (kind = 'input' or batch_id = of_batch
        or batch_id is not null and not exists (select from batches b where b.id = a.batch_id));
    if found then
        perform pg_notify('batchmill', 'upkeep');
    end if;
end $$;

-- Applies the releases of up to `most` files, and gives up the files that nothing needs any more. A job needs the files
-- that it made, and those that its item named when it was submitted. A locked file is left for a later call, because a
-- submit in an open transaction may name it. Returns the number of files.
create or replace function apply_releases(most integer) returns integer
language plpgsql set search_path = batchmill, pg_catalog, pg_temp
set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set jit = off as $$
declare
    ids uuid[] := array(
        select f.id from (select distinct artifact_id from artifact_releases order by artifact_id) r
        cross join lateral (
            select id from artifacts where id = r.artifact_id and state = 'kept' for update skip locked) f
        limit most);
    unneeded uuid[];
begin
    with applied as (
        delete from artifact_releases where artifact_id = any (ids) returning *
    ), released as (
        select artifact_id, batch_id, item_block(position) as block,
            range_agg(int4range(position, position + 1)) as items
        from applied where batch_id is not null group by artifact_id, batch_id, item_block(position)
    ), reduced as (
        update artifact_uses u set items = u.items - r.items from released r
        where u.artifact_id = r.artifact_id and u.batch_id = r.batch_id and u.block = r.block
          and u.items && r.items and not u.items <@ r.items
    ), ended as (
        delete from artifact_uses u using released r
        where u.artifact_id = r.artifact_id and u.batch_id = r.batch_id and u.block = r.block
          and u.items && r.items and u.items <@ r.items
        returning u.artifact_id
    ), ended_singles as (
        delete from artifact_uses u using applied r
        where u.artifact_id = r.artifact_id and u.batch_id is null and u.job_id = r.job_id
        returning u.artifact_id
    ), made as (
        update artifacts a set is_released = true from applied r
        -- Not `=`, for which Postgres might look up all files of the job.
        where a.id = r.artifact_id and a.job_id is not distinct from r.job_id
        returning a.id
    )
    select array(
        select artifact_id from ended union select artifact_id from ended_singles union select id from made)
    into unneeded;
    update artifacts a set state = 'gone', collect_at = clock()
    where id = any (unneeded) and (job_id is null or is_released) and not exists (
        select from artifact_uses u where u.artifact_id = a.id and isempty(u.items) is not true);
    if cardinality(ids) < most then
        perform forget_releases();
    end if;
    return cardinality(ids);
end $$;

-- Deletes the releases of files that are gone already.
create or replace function forget_releases() returns void
language sql
begin atomic
    delete from artifact_releases where (artifact_id, id) in (
        select artifact_id, id from artifact_releases r
        where not exists (select from artifacts a where a.id = r.artifact_id and a.state = 'kept')
        for update skip locked);
end;

-- Whether there are files for the upkeep to remove.
create or replace function has_garbage() returns boolean
language sql stable
return exists (select from artifact_releases)
    or exists (select from artifacts where collect_at <= clock())
    or exists (select from artifacts where state in ('stored', 'kept') and expires_at <= clock())
    or exists (select from artifacts where state = 'writing' and written_at <= clock() - interval '1 hour')
    or exists (select from artifacts where collect_at > clock() and sha256 is null and size > 0);

-- Gives up released and expired files, and files whose last write is an hour ago. Returns up to `most` files that can
-- be removed.
create or replace function collect_garbage(most integer) returns table (id uuid, storage_key text)
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    -- Processes of schema versions up to 19 do not call this.
    perform apply_releases(most);
    perform free_reservations(most);
    update artifacts set state = 'gone', collect_at = clock() where id = any (array(
        select id from artifacts where state in ('stored', 'kept') and expires_at <= clock()
        order by expires_at limit most for update skip locked));
    update artifacts set state = 'gone', collect_at = clock() where id = any (array(
        select id from artifacts where state = 'writing' and written_at <= clock() - interval '1 hour'
        order by written_at limit most for update skip locked));
    return query select id, storage_key from artifacts
        where collect_at <= clock() order by collect_at limit most;
end $$;

-- Postpones files that could not be removed, each by a different time, so that a file that can never be
-- removed does not block the others.
create or replace function postpone_garbage(of_ids uuid[], seconds double precision) returns void
language sql set search_path = batchmill, pg_catalog, pg_temp as $$
    update artifacts set collect_at = clock() + make_interval(secs => seconds * (1 + 9 * random()))
    where id = any (of_ids) and state = 'gone'
$$;

-- Adds the key that signs links from now on. Only the newest `keep` keys remain valid.
create or replace function add_signing_key(new_secret bytea, keep integer) returns void
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
begin
    insert into signing_keys (secret, created_at) values (new_secret, clock());
    delete from signing_keys where id not in (select id from signing_keys order by id desc limit keep);
end $$;
