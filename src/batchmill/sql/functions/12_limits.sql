-- Limits: their names, their free slots, and how they change while jobs run.

-- Tasks that come with batchmill. Only the engine submits to them.
create or replace function is_builtin(task text) returns boolean
language sql immutable parallel safe
return starts_with(task, 'batchmill.');

-- The pipeline of a task is the part of its name before the first dot; a task without a dot has none.
create or replace function pipeline_of(task text) returns text
language sql immutable parallel safe
return case when task like '%.%' then split_part(task, '.', 1) end;

-- The template of a limit, if it has one: `task:a/key:k` belongs to `task:a/key:*`.
create or replace function template_of(limit_name text) returns text
language sql immutable parallel safe
return case when limit_name like '%*' then null
    when limit_name ~ '^(tenant|key|batch):' then split_part(limit_name, ':', 1) || ':*'
    when limit_name ~ '^(task|pipeline):[^/]+/' then regexp_replace(limit_name, '^([a-z]+:[^/]+/[a-z]+:).*$', '\1*')
end;

-- Every limit that a job may count on, with its template, if any. A batch of a keyed task has several lanes,
-- so a limit counts its jobs; a batch of another task has one lane, which counts them. Built-in tasks take no
-- slots of the limits that are set for the user's own work.
create or replace function limit_names(task text, tenant text, batch_id uuid, key text)
returns table (name text, template text)
language sql immutable parallel safe
begin atomic
    select name, template from (values
        ('system', null, not batchmill.is_builtin(task)),
        ('task:' || task, null, true),
        ('tenant:' || tenant, 'tenant:*', not batchmill.is_builtin(task)),
        ('task:' || task || '/tenant:' || tenant, 'task:' || task || '/tenant:*', true),
        ('batch:' || batch_id::text, 'batch:*', batch_id is not null),
        ('key:' || key, 'key:*', key <> ''),
        ('task:' || task || '/key:' || key, 'task:' || task || '/key:*', key <> ''),
        ('task:' || task || '/batch:' || batch_id::text, 'task:' || task || '/batch:*',
            batch_id is not null and key <> '')
    ) as fits (name, template, fit)
    where fit
    union all
    select 'pipeline:' || batchmill.pipeline_of(task) || scope || which,
        case when scope <> '' then 'pipeline:' || batchmill.pipeline_of(task) || scope || '*' end
    from (values ('', ''), ('/tenant:', tenant), ('/batch:', batch_id::text), ('/key:', nullif(key, '')))
        as scopes (scope, which)
    where batchmill.pipeline_of(task) is not null and which is not null;
end;

-- The names of all limits that these lanes may count on.
create or replace function limits_over(lane_ids bigint[]) returns text[]
language sql stable
return array(
    select distinct n.name from lanes l
    cross join lateral limit_names(l.task, l.tenant, l.batch_id, l.key) n
    where l.id = any (lane_ids));

-- Whether anything except the lanes themselves has to be counted.
create or replace function have_limits(lane_ids bigint[]) returns boolean
language plpgsql stable as $$
begin
    return exists (select from limits where counts)
        or exists (select from lanes where id = any (lane_ids) and key <> '');
end $$;

-- Claims and completions hold this lock shared. A transaction that creates or drops a limit holds it
-- exclusively, so that the count that initialises `running` cannot change meanwhile.
create or replace function hold_limits_still() returns void language sql
begin atomic
    select pg_advisory_xact_lock(hashtext('batchmill.limits'));
end;

create or replace function hold_limits_shared() returns void language sql
begin atomic
    select pg_advisory_xact_lock_shared(hashtext('batchmill.limits'));
end;

create or replace function running_under(limit_name text) returns integer
language sql stable
begin atomic
    select coalesce(sum(l.running), 0)::integer
    from lanes l cross join lateral limit_names(l.task, l.tenant, l.batch_id, l.key) n
    where l.is_busy and n.name = limit_name;
end;

-- The starts in the period before `moment`, and `more` starts at `moment`. Times are rounded up to hundredths of the
-- period: no window exceeds the rate, and the record stays small.
create or replace function add_starts(
    started_at timestamptz[], started integer[], period double precision, more integer, moment timestamptz
) returns table (at timestamptz[], n integer[])
language sql stable
begin atomic
    select coalesce(array_agg(s.at order by s.at), '{}'), coalesce(array_agg(s.n order by s.at), '{}')
    from (
        select u.at, sum(u.n)::integer as n from (
            select * from unnest(started_at, started) as before (at, n)
            union all
            select to_timestamp(ceil(extract(epoch from moment) * 100 / period) * period / 100), more
            where more > 0) u
        where u.at > moment - make_interval(secs => period)
        group by u.at) s;
end;

-- How many more jobs may start now, or once `ending` running jobs have ended.
create or replace function free_slots(m limits, moment timestamptz, ending integer default 0) returns integer
language sql stable
return least(
    coalesce(m.slots - m.running + ending, 2147483647),
    coalesce(m.rate - (
        select coalesce(sum(n), 0)::integer from unnest(m.started_at, m.started) as s (at, n)
        where at > moment - make_interval(secs => m.period)), 2147483647));

-- The values that a template declares for its limits.
create or replace function declared_by(template_name text)
returns table (slots integer, rate integer, period double precision, paused boolean)
language sql stable
begin atomic
    select coalesce(set_slots, declared_slots), rate, period, paused
    from limits where name = template_name;
end;

-- Creates the missing limits that templates define for these lanes. Every transaction that starts or ends
-- jobs calls this first, so the number of running jobs does not change during the count.
create or replace function make_limits_from_templates(lane_ids bigint[]) returns void
language plpgsql as $$
begin
    if not exists (select from limits where name like '%*') then
        return;
    end if;
    insert into limits (name, declared_slots, declared_rate, declared_period, declared_paused, running)
    select n.name, t.*, running_under(n.name)
    from (
        select distinct n.* from lanes l
        cross join lateral limit_names(l.task, l.tenant, l.batch_id, l.key) n
        where l.id = any (lane_ids)) n
    cross join lateral declared_by(n.template) t
    where (select id from limits m where m.name = n.name) is null
    order by n.name
    on conflict do nothing;
end $$;

-- The slots of a batch's lane. A batch of a keyed task has several lanes, so a limit row counts its jobs.
-- In plpgsql, because before PostgreSQL 18 a function in SQL is planned at every call.
create or replace function lane_slots(of_task text, of_batch uuid) returns integer
language plpgsql stable set enable_seqscan = off as $$
begin
    return (
        select m.slots from limits m join tasks t on t.name = of_task
        where of_batch is not null and not t.keyed and m.name = 'task:' || of_task || '/batch:*');
end $$;

-- Applies a template to its limits and lanes. The caller holds the exclusive lock of the limits.
create or replace function spread_template(template_name text) returns void
language plpgsql as $$
begin
    update limits m
    set declared_slots = t.slots, declared_rate = t.rate, declared_period = t.period,
        declared_paused = t.paused
    from declared_by(template_name) t where template_of(m.name) = template_name;
    if template_name ~ '^task:[^/]+/batch:\*$' then
        update lanes l
        set slots = lane_slots(l.task, l.batch_id)
        where l.task = substr(template_name, 6, length(template_name) - 13)
          and l.batch_id is not null
          and l.slots is distinct from lane_slots(l.task, l.batch_id);
    end if;
end $$;

create or replace function declare_limit(limit_name text, slots integer, rate integer, period double precision)
returns void
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
declare
    known limits;
begin
    select * into known from limits m where m.name = limit_name;
    if (known.declared_slots, known.declared_rate, known.declared_period)
        is not distinct from (slots, rate, period) then
        return;
    end if;
    perform hold_limits_still();
    insert into limits (name, declared_slots, declared_rate, declared_period, running)
    values (limit_name, slots, rate, period, running_under(limit_name))
    on conflict (name) do update set
        declared_slots = excluded.declared_slots,
        declared_rate = excluded.declared_rate,
        declared_period = excluded.declared_period;
    perform spread_template(limit_name);
end $$;

-- Overrides declared values with those of an operator, also for providers (53_providers.sql). Null leaves a value
-- unchanged; `reset` restores the declared values. Returns the limit after the change.
create or replace function set_limit(
    limit_name text, slots integer, rate integer, period double precision, paused boolean,
    reset boolean default false
) returns limits
language plpgsql set search_path = batchmill, pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    changed limits;
    alone boolean := false;
begin
    if starts_with(limit_name, 'provider:') then
        return set_provider(limit_name, slots, rate, period, paused, reset);
    end if;
    if limit_name like '%*' or not exists (select from limits m where m.name = limit_name) then
        perform hold_limits_still();
        alone := true;
    end if;
    insert into limits (name, set_slots, set_rate, set_period, paused, running)
    values (limit_name, set_limit.slots, set_limit.rate, set_limit.period,
            coalesce(set_limit.paused, false), running_under(limit_name))
    on conflict (name) do update set
        set_slots = case when set_limit.reset then null
            else coalesce(set_limit.slots, limits.set_slots) end,
        set_rate = case when set_limit.reset then null
            else coalesce(set_limit.rate, limits.set_rate) end,
        set_period = case when set_limit.reset then null
            else coalesce(set_limit.period, limits.set_period) end,
        paused = coalesce(set_limit.paused, limits.paused)
    returning * into changed;
    if alone then
        perform spread_template(coalesce(template_of(limit_name), limit_name));
        select * into changed from limits m where m.name = limit_name;
    end if;
    perform pg_notify('batchmill', 'work');
    return changed;
end $$;
