-- The one clock. Tests move it with `set batchmill.clock_offset = '1 hour'`.
create function clock() returns timestamptz
language sql stable parallel safe as $$
    select pg_catalog.clock_timestamp()
        + coalesce(nullif(current_setting('batchmill.clock_offset', true), '')::interval, '0')
$$;

create function day_of(moment timestamptz) returns date
language sql immutable parallel safe as $$ select (moment at time zone 'UTC')::date $$;
