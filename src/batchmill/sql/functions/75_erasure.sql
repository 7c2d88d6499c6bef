-- Erasing a tenant: everything that belongs to it is deleted, in short transactions. The order of the steps is in
-- controls/eraser.py. Every step can be repeated, and several processes may work on one tenant. A process that was paused
-- may go on after another one has ended the erasure, when the name of the tenant is in use again. So every step that
-- changes rows by the name of the tenant is called through hold_erasure().

-- Begins to erase a tenant. From now on nothing can be submitted for it. Returns when the erasure was requested.
create or replace function begin_erasure(of_tenant text) returns timestamptz
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
begin
    if of_tenant in ('default', '*', '') then
        raise exception 'The tenant "%" cannot be erased: it belongs to the operator.', of_tenant
            using errcode = 'BM002';
    end if;
    insert into erasures (tenant, requested_at) values (of_tenant, clock()) on conflict do nothing;
    if found then
        update last_erasure
        set requested_at = clock(), erased_keys = erased_keys or exists (select from api_keys where tenant = of_tenant);
    end if;
    perform pg_notify('batchmill', 'upkeep');
    return (select requested_at from erasures where tenant = of_tenant);
end $$;

-- Returns a row if this erasure has not ended, and keeps it from ending before this transaction ends. An erasure is
-- identified by its tenant and by when it was requested.
create or replace function hold_erasure(of_tenant text, requested timestamptz) returns setof boolean
language sql volatile set search_path = batchmill, pg_catalog, pg_temp as $$
    select true from erasures where tenant = of_tenant and requested_at = requested for share
$$;

-- The advisory lock of a tenant. Tenants share 1,024 locks, because a transaction may add rows of any number of
-- tenants, and Postgres has room for a few thousand locks.
create or replace function erasure_lock(of_tenant text) returns integer
language sql immutable
return hashtext(of_tenant) & 1023;

-- Fails with a serialization error if an erasure has begun since the snapshot of this transaction: Postgres refuses to
-- lock a row that has changed since. The inner block is rolled back, so that the lock does not delay the next erasure.
create or replace function refuse_old_snapshot() returns void
language plpgsql as $$
begin
    perform from last_erasure for share;
    raise exception using errcode = 'UNDO0';
exception when sqlstate 'UNDO0' then
end $$;

-- Refuses a tenant that is being erased. Every transaction that adds rows of a tenant calls this before it commits. The
-- erasure waits for transactions that called this before the erasure was visible. Later transactions see it, or fail
-- because their snapshot is older.
-- Work without a tenant belongs to `default`, which is never erased, so a plain job does not pay for this.
create or replace function refuse_erased(of_tenant text) returns void
language plpgsql as $$
begin
    perform pg_advisory_xact_lock_shared(hashtext('batchmill.erasures'), erasure_lock(of_tenant));
    if current_setting('transaction_isolation') <> 'read committed' then
        perform refuse_old_snapshot();
    end if;
    if exists (select from erasures where tenant = of_tenant) then
        raise exception 'The tenant "%" is being erased. Try again when the erasure has ended.', of_tenant
            using errcode = 'BM015';
    end if;
end $$;

-- Whether an open transaction has called refuse_erased() for this tenant, or for one with the same lock. Transactions
-- that call refuse_erased() from now on wait until this one ends. They may hold other locks, so this transaction must
-- not wait for a lock after this call, and must be short.
create or replace function has_writers(of_tenant text) returns boolean
language sql volatile
return not pg_try_advisory_xact_lock(hashtext('batchmill.erasures'), erasure_lock(of_tenant));

-- A trigger on every table of applications that has a tenant. It runs as its owner, because the tenant that inserts a
-- row may not see erasures. Rows that other triggers insert while the erasure deletes are deleted by its next pass.
create or replace function refuse_erased_row() returns trigger
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
begin
    if current_setting('batchmill.erasing', true) is distinct from 'on' then
        perform refuse_erased(new.tenant);
    end if;
    return null;
end $$;

-- Takes the erasure of this tenant, or one that no process has worked on for `idle` seconds. Erasures take turns,
-- so that one that waits does not delay the others. Returns the erasure with the seconds since it was requested.
create or replace function take_erasure(
    of_tenant text, idle double precision, out tenant text, out requested_at timestamptz, out age double precision
)
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
begin
    update erasures e set worked_at = clock()
    where e.tenant = (
        select w.tenant from erasures w
        where case when of_tenant is not null then w.tenant = of_tenant
            else coalesce(w.worked_at < clock() - make_interval(secs => idle), true) end
        order by w.worked_at nulls first, w.requested_at limit 1)
    returning e.tenant, e.requested_at, extract(epoch from clock() - e.requested_at)
    into take_erasure.tenant, take_erasure.requested_at, take_erasure.age;
end $$;

-- Begins to cancel a batch that must run no callback and notify nobody when it ends. One transaction does both: a
-- notification that was added before is deleted, and a later one is refused.
create or replace function cancel_silently(of_batch uuid) returns void
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
begin
    perform begin_cancel(of_batch);
    update batches set on_finish = null where id = of_batch;
    delete from notifications where batch_id = of_batch;
end $$;

-- Ends jobs without a batch that wait, and marks those that run as cancelled. Returns how many it changed.
create or replace function cancel_singles(of_tenant text, most integer) returns integer
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    lane_ids bigint[];
    submitted bigint[];
    changed integer;
begin
    perform hold_limits_shared();
    lane_ids := array(
        select l.id from lanes l
        where l.tenant = of_tenant and l.batch_id is null and exists (
            select from jobs j where j.lane_id = l.id and j.cancelled_at is null)
        order by l.id limit 100);
    perform lock_around(lane_ids);
    changed := cancel_jobs(array(
        select j.id from unnest(lane_ids) as l (id)
        cross join lateral (select id from jobs where lane_id = l.id and cancelled_at is null limit most) j
        limit most), clock());
    -- Skips jobs that a concurrent claim has locked to put them into a lane.
    submitted := array(
        select id from jobs where tenant = of_tenant and lane_id is null
        order by id limit most for update skip locked);
    return changed + end_waiting(submitted, clock());
end $$;

-- Ends jobs that still run, as if their workers had reported that they were cancelled. Later outcomes of these
-- attempts are refused. Returns how many it ended.
create or replace function end_running(of_tenant text, most integer) returns integer
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    o outcomes;
begin
    select array_agg(id), array_agg(fence), array_agg('cancelled'::text), json_agg(null::json), json_agg(null::json),
        array_agg(distinct lane_id)
    into o from (select * from running_jobs() where tenant = of_tenant limit most) j;
    if o.ids is null then
        return 0;
    end if;
    return cardinality(o.ids) - cardinality(finish(o.ids, o.fences, o.kinds, o.details, o.progress, o.lanes));
end $$;

-- Gives up the files of a tenant. A file that is being written is removed by its writer, which notices this soon, or
-- by the upkeep an hour later, if the writer was killed. Returns how many it gave up.
create or replace function give_up_artifacts_of_tenant(of_tenant text, most integer) returns integer
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    changed integer;
begin
    update artifacts
    set state = 'gone', collect_at = case state when 'writing' then written_at + interval '1 hour' else clock() end
    where id = any (array(
        select id from artifacts where tenant = of_tenant and state <> 'gone' order by id limit most for update));
    get diagnostics changed = row_count;
    return changed;
end $$;

-- All tables with a tenant, of batchmill and of applications, with their partitions.
create or replace function all_tables_with_tenant() returns setof regclass
language sql stable set search_path = batchmill, pg_catalog, pg_temp as $$
    select tables_with_tenant(name) from (
        select 'batchmill' as name union select schema from application_versions order by 1) schemas
$$;

-- The tables whose rows can simply be deleted, with their sizes in pages. Other functions empty those of jobs, lanes
-- and files.
create or replace function tables_to_erase() returns table (name text, pages bigint)
language sql stable set search_path = batchmill, pg_catalog, pg_temp as $$
    select t::text, pg_relation_size(t) / current_setting('block_size')::bigint
    from all_tables_with_tenant() t join pg_class c on c.oid = t
    where c.relkind = 'r' and pg_relation_size(t) > 0
      and t not in ('jobs'::regclass, 'lanes', 'artifacts', 'erasures')
$$;

-- Deletes a tenant's rows in a part of a table. Returns how many, or null if it cannot delete them yet: other rows
-- refer to them, or a transaction holds them.
create or replace function erase_pages(of_table text, of_tenant text, first bigint, pages bigint) returns bigint
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    deleted bigint;
begin
    -- The partition may have been dropped meanwhile.
    if to_regclass(of_table) is null then
        return 0;
    end if;
    perform set_config('batchmill.erasing', 'on', true), set_config('lock_timeout', '1s', true);
    -- Checks constraints now: the exception handler below would miss an error at commit.
    set constraints all immediate;
    execute format('delete from %s where tenant = $1 and ctid >= %L and ctid < %L %s',
        of_table, format('(%s,0)', first), format('(%s,0)', first + pages),
        -- A batch that was committed meanwhile may have jobs, which need it.
        case of_table when 'batches' then 'and finished_at is not null' end) using of_tenant;
    get diagnostics deleted = row_count;
    return deleted;
exception when foreign_key_violation or restrict_violation or lock_not_available then
    return null;
end $$;

-- Deletes the lanes of a tenant that has no more jobs. A lane that is locked is left for the next call.
create or replace function erase_lanes(of_tenant text) returns integer
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    deleted integer;
begin
    delete from lanes l where id in (
        select id from lanes where tenant = of_tenant and running = 0 limit 1000 for update skip locked)
      and not exists (select from jobs j where j.lane_id = l.id);
    get diagnostics deleted = row_count;
    return deleted;
end $$;

-- The tables of the catalogue that must have no row of an erased tenant.
create or replace function erasable_tables() returns setof text
language sql stable set search_path = batchmill, pg_catalog, pg_temp as $$
    select t::text from all_tables_with_tenant() t join pg_class c on c.oid = t
    where not c.relispartition and t <> 'erasures'::regclass
$$;

-- Counts the rows of a tenant in each of these tables. Tables without such rows are left out.
create or replace function tenant_remains(of_tenant text) returns table (name text, rows bigint)
language plpgsql stable set search_path = batchmill, pg_catalog, pg_temp as $$
begin
    foreach name in array array(select t from erasable_tables() t) loop
        execute format('select count(*) from %s where tenant = $1', name) into rows using of_tenant;
        if rows > 0 then
            return next;
        end if;
    end loop;
end $$;

-- Deletes the limits that are named after a tenant, and its storage group, if the group stores no files.
create or replace function erase_names(of_tenant text) returns void
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    ids bigint[] := array(
        select id from limits
        where name = 'tenant:' || of_tenant
           or name ~ '^(task|pipeline):[^/]*/tenant:' and substr(name, strpos(name, '/tenant:') + 8) = of_tenant);
begin
    if ids <> '{}' then
        perform hold_limits_still();
        delete from limits where id = any (ids) and running = 0;
    end if;
    delete from storage_groups where name = group_of(of_tenant) and stored_bytes = 0;
end $$;

-- What has to end before the rows of a tenant can be deleted: jobs, files that are being written, and transactions
-- that have added rows without seeing the erasure.
create or replace function unsettled(of_tenant text, out jobs bigint, out files bigint, out transactions boolean)
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
begin
    transactions := has_writers(of_tenant);
    select (select count(*) from batches where tenant = of_tenant and finished_at is null) + (
            select count(*) from jobs where tenant = of_tenant and lane_id is null) + (
            select coalesce(sum(l.running), 0) from lanes l where l.tenant = of_tenant and l.batch_id is null),
        (select count(*) from artifacts where tenant = of_tenant)
    into jobs, files;
end $$;

-- Whether any table of the catalogue has a row of a tenant. Reads whole tables, so it may take long.
create or replace function has_remains(of_tenant text) returns boolean
language plpgsql stable set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    name text;
    found_one boolean;
begin
    foreach name in array array(select t from erasable_tables() t) loop
        execute format('select exists (select from %s where tenant = $1)', name) into found_one using of_tenant;
        if found_one then
            return true;
        end if;
    end loop;
    return false;
end $$;

-- Ends the erasure if nothing is left. Returns whether it has ended. Nothing can be added meanwhile: the transactions
-- that did not see the erasure have ended (see unsettled()), and all others are refused.
create or replace function end_erasure(of_tenant text, requested timestamptz) returns boolean
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
begin
    perform from erasures where tenant = of_tenant and requested_at = requested for update;
    if found and has_remains(of_tenant) then
        return false;
    end if;
    delete from erasures where tenant = of_tenant and requested_at = requested;
    return true;
end $$;
