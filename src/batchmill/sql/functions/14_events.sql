-- Events, as they are collected before they get their numbers.

-- Events of one type that a batch is about to get. `upto` is the number of the last one, counted from the
-- batch's last event. `data` has one element for each event, or one for all.
do $$ begin
    create type unnumbered_block as (type text, upto integer, job_ids bigint[], positions integer[], data json[]);
exception when duplicate_object then null;
end $$;

-- The data of most events. The name of a task needs no escaping.
create or replace function attempt_data(task text, attempt integer) returns json
language sql stable
return ('{"task": "' || task || '", "attempt": ' || attempt || '}')::json;
