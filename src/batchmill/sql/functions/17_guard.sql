-- The role that sees one tenant: it owns nothing and bypasses nothing. Reading is up to the policies
-- below; what changes jobs goes through functions that run as their owner, since limits count the jobs
-- of all tenants, and that look whose they are.
create function make_tenant_role() returns boolean
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

create function can_act_for_tenants() returns boolean
language sql stable as $$
    -- From 16 on, being a member does not mean that one may take the role.
    select exists (select from pg_roles where rolname = 'batchmill_tenant')
        and pg_has_role(current_user, 'batchmill_tenant',
            case when current_setting('server_version_num')::integer < 160000 then 'member' else 'set' end)
$$;

-- Hides rows from everyone but the owner, and from the owner's tenants all but their own. Called after
-- every migration, so that no table with a tenant is left out.
create function guard_tables() returns void
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    has_role boolean := make_tenant_role();
    guarded record;
begin
    for guarded in
        select c.relname as name, pg_get_userbyid(c.relowner) as owner, c.relispartition,
            not c.relforcerowsecurity as is_new, not exists (
                select from pg_policy p where p.polrelid = c.oid and p.polname = 'tenant') as is_closed
        from pg_class c
        where c.relnamespace = 'batchmill'::regnamespace and c.relkind in ('r', 'p') and exists (
            select from pg_attribute a
            where a.attrelid = c.oid and a.attname = 'tenant' and not a.attisdropped)
    loop
        if guarded.is_new then
            perform guard_table(guarded.name, guarded.owner);
        end if;
        if has_role and guarded.is_closed and not guarded.relispartition then
            execute format(
                'create policy tenant on %I to batchmill_tenant
                 using (tenant = nullif(current_setting(''batchmill.tenant'', true), ''''))
                 with check (tenant = nullif(current_setting(''batchmill.tenant'', true), ''''))',
                guarded.name);
        end if;
    end loop;
    if has_role then
        perform grant_to_tenants();
    end if;
end $$;

create function guard_table(name text, owner text) returns void
language plpgsql as $$
begin
    execute format('alter table %I enable row level security, force row level security', name);
    execute format('create policy engine on %I to %I using (true) with check (true)', name, owner);
end $$;

create function grant_to_tenants() returns void
language plpgsql as $$
begin
    grant usage on schema batchmill to batchmill_tenant;
    grant select on batches, jobs, finished, event_blocks, events, lanes, tasks, notifications, webhooks,
        artifacts, artifact_uses to batchmill_tenant;
    grant select, insert, update, delete on schedules to batchmill_tenant;
end $$;
