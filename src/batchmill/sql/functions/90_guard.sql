-- Row-level security and grants. Runs after every migration.

-- The role for tenants owns nothing and bypasses nothing. The policies below control what it reads. All
-- writes go through functions that run as their owner, because limits count the jobs of all tenants. These
-- functions check the tenant of each row.
create or replace function make_tenant_role() returns boolean
language plpgsql as $$
begin
    if not exists (select from pg_roles where rolname = 'batchmill_tenant') then
        create role batchmill_tenant nologin;
    end if;
    if not can_act_for_tenants() then
        execute format('grant batchmill_tenant to %I', current_user);
    end if;
    return true;
exception
    when duplicate_object or unique_violation then
        return make_tenant_role();
    when insufficient_privilege then
        return false;
end $$;

create or replace function can_act_for_tenants() returns boolean
language sql stable
-- From Postgres 16 on, a member of a role may not always set it.
return exists (select from pg_roles where rolname = 'batchmill_tenant')
    and pg_has_role(current_user, 'batchmill_tenant',
        case when current_setting('server_version_num')::integer < 160000 then 'member' else 'set' end)
    and pg_has_role(session_user, (select relowner from pg_class where oid = 'batchmill.batches'::regclass), 'member');

-- Guards the tables of batchmill and of all applications, and revokes functions from roles that do not need
-- them. Runs after every migration, so that it covers every table with a tenant and every function.
create or replace function guard_tables() returns void
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    has_role boolean := make_tenant_role();
begin
    perform guard_tables('batchmill');
    perform guard_tables(nspname::text) from pg_namespace
    where nspname in (select schema from application_versions);
    perform guard_functions();
    if has_role then
        perform grant_to_tenants();
    end if;
    perform grant_to_writers();
end $$;

-- Hides the rows of every table with a column `tenant` from roles other than the owner, and shows each tenant
-- only its own rows. In the schema of an application, a tenant may also write its rows, and nobody can add rows of
-- a tenant that is being erased. Tables without the column are closed to tenants, unless the application grants them.
create or replace function guard_tables(of_schema text) returns void
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    is_application constant boolean := of_schema <> 'batchmill';
    has_role boolean := make_tenant_role();
    guarded record;
begin
    for guarded in
        select c.oid::regclass as name, c.relispartition, not c.relforcerowsecurity as is_new, not exists (
            select from pg_policy p where p.polrelid = c.oid and p.polname = 'tenant') as is_closed, exists (
            select from pg_trigger g where g.tgrelid = c.oid and g.tgname = 'batchmill_erasure') as has_trigger
        from tables_with_tenant(of_schema) t join pg_class c on c.oid = t
    loop
        if guarded.is_new then
            perform guard_table(guarded.name);
        end if;
        -- A partition has the trigger of its parent.
        if is_application and not guarded.has_trigger and not guarded.relispartition then
            perform guard_erasures(guarded.name);
        end if;
        if has_role and guarded.is_closed and not guarded.relispartition then
            perform open_to_tenants(guarded.name);
            if is_application then
                execute format('grant select, insert, update, delete on %s to batchmill_tenant', guarded.name);
            end if;
        end if;
    end loop;
    if has_role and is_application then
        execute format('grant usage on schema %I to batchmill_tenant', of_schema);
        execute format('grant usage on all sequences in schema %I to batchmill_tenant', of_schema);
    end if;
end $$;

-- The policy names the owner of the table. For a partition it names the owner of the partitioned table, because another
-- role may have created the partition.
create or replace function guard_table(guarded regclass) returns void
language plpgsql as $$
begin
    execute format('alter table %s enable row level security, force row level security', guarded);
    execute format('create policy engine on %s to %I using (true) with check (true)', guarded, (
        select pg_get_userbyid(relowner) from pg_class where oid = coalesce(pg_partition_root(guarded), guarded)));
end $$;

-- Refuses new rows of tenants that are being erased. It runs after the row's own triggers, which may set its tenant.
create or replace function guard_erasures(guarded regclass) returns void
language plpgsql as $$
begin
    execute format('create trigger batchmill_erasure after insert or update of tenant on %s for each row
        when (new.tenant <> ''default'') execute function batchmill.refuse_erased_row()', guarded);
end $$;

-- As in seen_tenant(), the setting counts only in a session that could also act as the engine. The policy
-- evaluates it once per query, not per row. It uses no function of this schema, so that
-- none of them has to stay for it.
create or replace function open_to_tenants(opened regclass) returns void
language plpgsql as $$
declare
    is_own constant text := $policy$tenant = (
        select nullif(current_setting('batchmill.tenant', true), '') from pg_class c
        where c.oid = 'batchmill.batches'::regclass and pg_has_role(session_user, c.relowner, 'member'))$policy$;
begin
    execute format('create policy tenant on %s to batchmill_tenant using (%s) with check (%s)',
        opened, is_own, is_own);
end $$;

-- By default, Postgres lets everyone call a new function, and resolves names in its body with the caller's
-- search path. A body in standard SQL is bound when it is created: it needs no path, and can be inlined,
-- unlike a function with settings.
create or replace function guard_functions() returns void
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    guarded record;
begin
    for guarded in
        select p.oid::regprocedure as name, has_function_privilege('public', p.oid, 'execute') as is_public,
            p.prosqlbody is null and not exists (
                select from unnest(p.proconfig) as setting where starts_with(setting, 'search_path=')) as is_loose
        from pg_proc p where p.pronamespace = 'batchmill'::regnamespace
    loop
        if guarded.is_public then
            execute format('revoke all on function %s from public', guarded.name);
        end if;
        if guarded.is_loose then
            execute format('alter function %s set search_path = batchmill, pg_catalog, pg_temp', guarded.name);
        end if;
    end loop;
end $$;

-- Grants everything that a tenant's request needs. Every function that writes checks the tenant of the row:
-- see is_own(). If a function has several signatures, all are granted: processes of the previous version call
-- the older one.
create or replace function grant_to_tenants() returns void
language plpgsql as $$
declare
    granted regprocedure;
begin
    revoke all on all tables in schema batchmill from batchmill_tenant;
    revoke all on all functions in schema batchmill from batchmill_tenant;
    grant usage on schema batchmill to batchmill_tenant;
    grant select on batches, duplicates, jobs, finished, event_blocks, events, lanes, tasks, notifications, webhooks,
        artifacts, artifact_uses, schedules, batch_usage, daily_usage to batchmill_tenant;
    for granted in
        select oid from pg_proc where pronamespace = 'batchmill'::regnamespace and proname = any (array[
            'clock', 'seen_tenant', 'is_builtin', 'named_artifacts',
            'hold_request', 'submit', 'submit_one', 'enqueue', 'cancel_batch', 'begin_cancel', 'cancel_step', 'cancel_job',
            'retry_batch', 'retry_job', 'delete_batch', 'watch_batch', 'watch_job', 'page_end', 'raw_size',
            'duplicates_of',
            'notify_batch', 'save_webhook', 'rotate_webhook', 'enable_webhook', 'delete_webhook',
            'begin_input', 'grow_artifact', 'end_artifact', 'give_up_artifact', 'delete_artifact',
            'forget_artifacts', 'count_download', 'save_schedule', 'pause_schedule', 'delete_schedule', 'quota_use'])
    loop
        execute format('grant execute on function %s to batchmill_tenant', granted);
    end loop;
end $$;

-- Lets roles that have table grants from an operator call the functions too. Every upgrade may add functions,
-- so direct grants on them would not be enough.
create or replace function grant_to_writers() returns void
language plpgsql as $$
declare
    writer text;
begin
    for writer in
        select distinct pg_get_userbyid(a.grantee) from pg_class c cross join lateral aclexplode(c.relacl) a
        where c.oid = 'jobs'::regclass and a.privilege_type = 'INSERT' and a.grantee not in (0, c.relowner)
    loop
        execute format('grant execute on all functions in schema batchmill to %I', writer);
    end loop;
end $$;
