-- Whom a call acts for: one tenant, where the service has taken the role that sees one, else everyone.
create function acting_tenant() returns text
language plpgsql stable as $$
declare
    acting text := nullif(current_setting('batchmill.tenant', true), '');
begin
    if current_setting('role') <> 'batchmill_tenant' then
        return null;
    end if;
    if acting is null then
        raise exception 'No tenant is set: call set_config(''batchmill.tenant'', …, true).'
            using errcode = 'BM002';
    end if;
    return acting;
end $$;

create function is_own(of_tenant text) returns boolean
language plpgsql stable as $$
begin
    return coalesce(of_tenant = acting_tenant(), true);
end $$;
