-- Partitions of ended jobs and of events, one for each day of expiry.

-- Creates the partition of a day, and moves its rows there from the default partition.
create or replace function make_partition(parent text, day date) returns boolean
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    child text := format('%s_%s', parent, to_char(day, 'YYYYMMDD'));
begin
    if to_regclass('batchmill.' || child) is not null then
        return false;
    end if;
    -- Lock the parent too: a statement that was planned without the new partition would read and write its
    -- rows in the default partition.
    execute format('lock table only %I, %I in access exclusive mode', parent, parent || '_default');
    if to_regclass('batchmill.' || child) is not null then
        return false;
    end if;
    execute format('create table %I (like %I including defaults including constraints including storage)',
        child, parent);
    execute format(
        'with moved as (delete from %I where expires_on = %L returning *)
         insert into %I select * from moved', parent || '_default', day, child);
    execute format('alter table %I add constraint %I check (expires_on = %L and expires_on is not null)',
        child, child || '_day', day);
    execute format('alter table %I attach partition %I for values from (%L) to (%L)',
        parent, child, day, day + 1);
    perform guard_table(child::regclass);
    execute format('alter table %I drop constraint %I', child, child || '_day');
    return true;
end $$;

-- The days that have partitions, counted from today. Tests have fewer, because each one makes a new database slower.
create or replace function partition_days() returns setof integer
language sql immutable
begin atomic
    select generate_series(0, 35);
end;

-- Creates the partitions of the coming days, so that the default partitions only contain rows that expire
-- later. Returns how many were missing.
create or replace function make_partitions() returns integer
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    today date := day_of(clock());
begin
    return (
        select count(*) filter (where make_partition(parent, today + ahead))
        from unnest(array['event_blocks', 'finished']) as parent cross join partition_days() as ahead);
end $$;

-- Drops every partition whose day has passed. Deletes expired rows from the default partitions.
create or replace function drop_expired_partitions(today date) returns integer
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    child record;
    dropped integer := 0;
begin
    for child in
        select c.relname from pg_inherits i
        join pg_class c on c.oid = i.inhrelid
        join pg_class p on p.oid = i.inhparent
        join pg_namespace n on n.oid = p.relnamespace
        where n.nspname = 'batchmill' and p.relname in ('finished', 'event_blocks')
          and c.relname ~ '_\d{8}$' and to_date(right(c.relname, 8), 'YYYYMMDD') < today
        order by c.relname
    loop
        execute format('drop table if exists %I', child.relname);
        dropped := dropped + 1;
    end loop;
    delete from finished_default where expires_on < today;
    delete from event_blocks_default where expires_on < today;
    return dropped;
end $$;
