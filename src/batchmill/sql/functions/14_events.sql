-- Events, as they are gathered before they get their numbers.

-- Events of one kind that a batch is about to be told, up to the one that is `upto` from now; `data` is
-- one for each, or one for all.
do $$ begin
    create type telling as (type text, upto integer, job_ids bigint[], positions integer[], data json[]);
exception when duplicate_object then null;
end $$;

-- Most events tell this; the name of a task needs no escaping.
create or replace function attempt_data(task text, attempt integer) returns json
language sql stable
return ('{"task": "' || task || '", "attempt": ' || attempt || '}')::json;
