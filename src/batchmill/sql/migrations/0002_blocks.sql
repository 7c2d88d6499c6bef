-- Starting and ending jobs writes less: a job that starts touches no index, a lane that counts only
-- those whose order it changes, and events that come about together are one row.

set local search_path = batchmill, pg_catalog;

-- What the library refuses; -(-2147483648) would fail when a claim puts the job into its lane.
update jobs set priority = least(greatest(priority, -32768), 32767)
where priority not between -32768 and 32767;
update schedules set priority = least(greatest(priority, -32768), 32767)
where priority not between -32768 and 32767;
alter table schedules
    add constraint schedules_priority check (priority between -32768 and 32767);

-- No index knows `state`, so a started job is rewritten in place; its page has to have room for that.
alter table jobs
    add column is_scheduled boolean not null generated always as (state = 'scheduled') stored,
    add constraint jobs_priority check (priority between -32768 and 32767),
    set (fillfactor = 45);

-- `id + 0` keeps the order; a plain id here would tempt the planner to look ids up in these while
-- the table is small, and to go on doing so when it is not.
drop index jobs_queue, jobs_scheduled, jobs_running;
create index jobs_queue on jobs (lane_id, is_scheduled, (-priority), (id + 0)) where lane_id is not null;
create index jobs_scheduled on jobs (lane_id, run_at, (-priority), (id + 0)) where is_scheduled;
create index jobs_cancelled on jobs (cancelled_at) where cancelled_at is not null;

alter table lanes
    add column is_open boolean not null generated always as
        (blocked_by is null and (slots is null or running < slots)) stored,
    add column is_busy boolean not null generated always as (running > 0) stored;
drop index lanes_open;
create index lanes_open on lanes (task, ready_at) where is_open;
create index lanes_busy on lanes (task) where is_busy;

-- False while a lost or stopped worker may have left running jobs behind.
alter table workers add column is_settled boolean not null default false;
create index workers_to_settle on workers (id) where not is_settled and state in ('lost', 'stopped');

-- Events of one kind that a batch was told in one transaction; `last_number` is that of the last, and
-- `data` is one for each or one for all. Compressing the numbers would cost more than it saves.
alter table events rename to event_blocks;
alter table event_blocks rename column number to last_number;
alter table event_blocks rename column job_id to job_ids;
alter table event_blocks rename column position to positions;
alter table event_blocks
    alter column job_ids type bigint[] using array[job_ids],
    alter column positions type integer[] using array[positions],
    alter column data type json[] using array[data];
alter table event_blocks
    alter column job_ids set not null,
    alter column positions set not null,
    alter column data set not null,
    alter column job_ids set storage external,
    alter column positions set storage external;
do $$
declare
    child text;
begin
    for child in
        select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'event_blocks'::regclass
    loop
        execute format('alter table %I rename to %I', child, replace(child, 'events_', 'event_blocks_'));
    end loop;
end $$;

create view events with (security_invoker = true) as
select b.batch_id, once.before + e.place::integer as number, b.tenant, b.type, e.job_id, e.position,
    coalesce(once.data, e.data) as data, b.at, b.expires_on
from event_blocks b
cross join lateral (
    -- Not for each event: these arrays may have to be fetched from elsewhere.
    select b.last_number - cardinality(b.job_ids) as before,
        case cardinality(b.data) when 1 then b.data[1] end as data offset 0) once
cross join lateral unnest(b.job_ids, b.positions, b.data) with ordinality
    as e (job_id, position, data, place);
