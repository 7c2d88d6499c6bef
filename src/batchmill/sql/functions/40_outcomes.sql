-- Defines what each outcome of an attempt does to its job. domain/outcome.py has the same table for Python, and
-- tests/store/test_outcomes.py compares the two with what Postgres does.
--
--   outcome    next state  event          attempt        snoozes    history   what else changes
--   completed  completed   job_completed  counts                              keeps the result
--   failed     failed      job_failed     counts                    + error   keeps the error
--   cancelled  cancelled   job_cancelled  counts
--   retry      scheduled   job_retrying   counts                    + error   runs again after the delay
--   snooze     scheduled   job_snoozed    does not count + 1                  runs again after the delay
--   release    ready       job_released   does not count
--   advance    ready       job_stage      starts at 0    starts at 0          task, key, payload and lane
--
-- A job that was cancelled while it ran ends as cancelled, whatever its outcome. Each function is one expression,
-- which the planner inlines, so the calls cost nothing.

create or replace function ends_job(kind text) returns boolean
language sql immutable
return kind in ('completed', 'failed', 'cancelled');

-- Whether the job waits again. An unknown outcome neither ends a job nor puts it back.
create or replace function puts_back(kind text) returns boolean
language sql immutable
return kind in ('retry', 'snooze', 'release', 'advance');

-- The state of a job that waits again. A job that ends has its outcome as its state.
create or replace function state_after(kind text) returns job_state
language sql immutable
return case when kind in ('retry', 'snooze') then 'scheduled'::job_state else 'ready'::job_state end;

create or replace function attempt_after(kind text, attempt integer) returns integer
language sql immutable
return case kind when 'retry' then attempt when 'advance' then 0 else attempt - 1 end;

create or replace function snoozes_after(kind text, snoozes integer) returns integer
language sql immutable
return case kind when 'snooze' then snoozes + 1 when 'advance' then 0 else snoozes end;

create or replace function has_error(kind text) returns boolean
language sql immutable
return kind in ('failed', 'retry');

create or replace function event_type(kind text) returns text
language sql immutable
return case kind
    when 'completed' then 'job_completed'
    when 'failed' then 'job_failed'
    when 'retry' then 'job_retrying'
    when 'advance' then 'job_stage'
    when 'snooze' then 'job_snoozed'
    when 'release' then 'job_released'
    when 'cancelled' then 'job_cancelled'
end;

-- Whether the event only identifies the attempt.
create or replace function is_plain(kind text) returns boolean
language sql immutable
return kind in ('completed', 'release', 'cancelled');

-- The data of events that contain more than the attempt.
create or replace function event_data(kind text, task text, attempt integer, detail json) returns json
language sql stable
return case kind
    when 'failed' then json_build_object('task', task, 'attempt', attempt,
        'code', detail -> 'error' ->> 'code', 'message', detail -> 'error' ->> 'message')
    when 'retry' then json_build_object('task', task, 'attempt', attempt,
        'code', detail -> 'error' ->> 'code', 'message', detail -> 'error' ->> 'message',
        'delay', detail -> 'delay')
    when 'advance' then json_build_object('from', task, 'task', detail ->> 'task')
    when 'snooze' then json_build_object('task', task, 'delay', detail -> 'delay')
end;
