-- The tenant that a session acts for.

-- A function that runs as its owner cannot learn its caller from current_user. It checks the session instead:
-- the role that the session has set, or else its login role. Neither can be a role that the session is not a
-- member of.

-- The tenant whose rows the session may see and change: null for the engine, which has all tenants; '' for a
-- role that has no rows. The setting `batchmill.tenant` counts only in a session that could also act as the
-- engine, because every role can set it.
create or replace function seen_tenant() returns text
language plpgsql stable security definer set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    taken name := current_setting('role');
begin
    if taken = 'none' then
        taken := session_user;
    end if;
    if taken = 'batchmill_tenant' then
        return case when pg_has_role(session_user, current_user, 'member')
            then coalesce(current_setting('batchmill.tenant', true), '') else '' end;
    end if;
    return case when pg_has_role(taken, current_user, 'member') or may_write_everything(taken) then null else '' end;
end $$;

-- Whether an operator has granted a role the tables and the right to bypass row-level security.
create or replace function may_write_everything(role name) returns boolean
language sql stable
return coalesce((select rolbypassrls from pg_roles where rolname = role), false)
    and has_table_privilege(role, 'batchmill.jobs', 'insert')
    and has_table_privilege(role, 'batchmill.jobs', 'delete');

create or replace function refuse_other_tenant(acting text, named text) returns void
language plpgsql as $$
begin
    raise exception 'The connection acts for the tenant "%", so it cannot submit for "%".', acting, named
        using errcode = 'BM002';
end $$;

-- The tenant that a call acts for, or null for all tenants.
create or replace function acting_tenant() returns text
language plpgsql stable security definer set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    seen text;
begin
    -- The owner is the most common caller. This function is a security definer, so it runs as the owner.
    if session_user = current_user and current_setting('role') = 'none' then
        return null;
    end if;
    seen := seen_tenant();
    if seen = '' and current_setting('role') = 'batchmill_tenant'
        and pg_has_role(session_user, current_user, 'member') then
        raise exception 'No tenant is set: call set_config(''batchmill.tenant'', …, true).'
            using errcode = 'BM002';
    elsif seen = '' then
        raise exception 'The role % may not act for any tenant: see "Roles" in docs/howto/operations.md.', session_user
            using errcode = 'insufficient_privilege';
    end if;
    return seen;
end $$;

create or replace function is_own(of_tenant text) returns boolean
language plpgsql stable as $$
declare
    seen text := seen_tenant();
begin
    return seen is null or seen <> '' and seen = of_tenant;
end $$;

-- All tables of a schema that have a column `tenant`, with their partitions.
create or replace function tables_with_tenant(of_schema text) returns setof regclass
language sql stable
begin atomic
    select c.oid::regclass from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = of_schema and c.relkind in ('r', 'p') and exists (
        select from pg_attribute a
        where a.attrelid = c.oid and a.attname = 'tenant' and not a.attisdropped)
    order by c.relname;
end;
