-- The clock. All times come from here.

-- The only clock. Tests move it with `set batchmill.clock_offset = '1 hour'`. The setting applies only in
-- sessions of the engine, because a tenant that moved the clock could extend its quotas.
create or replace function clock() returns timestamptz
language plpgsql stable parallel safe as $$
begin
    if coalesce(current_setting('batchmill.clock_offset', true), '') = '' or batchmill.seen_tenant() is not null then
        return clock_timestamp();
    end if;
    return clock_timestamp() + current_setting('batchmill.clock_offset')::interval;
end $$;

create or replace function day_of(moment timestamptz) returns date
language sql immutable parallel safe
return (moment at time zone 'UTC')::date;
