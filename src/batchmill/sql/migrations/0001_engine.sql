-- The engine's tables. Live jobs are few and change often; finished ones are many and never change:
-- they live apart, and what expires is partitioned by the day it expires, so retention drops tables.
-- Hot tables have no foreign keys: every write goes through the functions beside this folder.

create schema if not exists batchmill;
set local search_path = batchmill, pg_catalog;

create type job_state as enum ('ready', 'scheduled', 'running', 'completed', 'failed', 'cancelled');
create type batch_state as enum
    ('pending', 'processing', 'completed', 'partial', 'failed', 'cancelled');

create table schema_version (
    version integer primary key,
    -- Which functions came with it, or since: they may change without a new version.
    functions text,
    applied_at timestamptz not null default clock_timestamp()
);

-- What workers have registered: a name outside this table is refused at submit.
create table tasks (
    name text primary key check (name ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$'),
    retry jsonb not null,
    keyed boolean not null default false,
    payload_limit integer not null default 1048576,
    registered_at timestamptz not null
);

create table batches (
    id uuid primary key,
    tenant text not null,
    task text not null,
    state batch_state not null default 'pending',
    total integer not null default 0,
    running integer not null default 0,
    completed integer not null default 0,
    failed integer not null default 0,
    cancelled integer not null default 0,
    duplicates integer not null default 0,
    last_event integer not null default 0,
    generation integer not null default 1,
    labels jsonb not null default '{}',
    on_finish text,
    slots integer,
    -- The transaction that is still adding jobs, while it does.
    opened_by xid8,
    created_at timestamptz not null,
    started_at timestamptz,
    finished_at timestamptz,
    cancelled_at timestamptz,
    watched_until timestamptz,
    expires_at timestamptz not null,
    expires_on date not null,
    check (running >= 0 and completed >= 0 and failed >= 0 and cancelled >= 0),
    check (running + completed + failed + cancelled <= total)
) with (fillfactor = 70);

create index batches_by_tenant on batches (tenant, created_at desc);
create index batches_by_time on batches (created_at desc);
create index batches_by_expiry on batches (expires_at);

-- One row for each request that was given an idempotency key.
create table requests (
    tenant text not null,
    key text not null,
    digest text,
    batch_id uuid,
    job_id bigint,
    expires_at timestamptz not null,
    primary key (tenant, key)
);

-- Where jobs of one task, tenant, batch and key wait, and where the running ones are counted.
create table lanes (
    id bigint generated always as identity primary key,
    task text not null,
    tenant text not null,
    batch_id uuid,
    key text not null default '',
    slots integer,
    running integer not null default 0 check (running >= 0),
    -- When work is due here, and by that whose turn is next; null while nothing waits.
    ready_at timestamptz,
    -- The full or paused limit that this lane is parked behind.
    blocked_by bigint,
    -- No ready job stands before this place, so a claim starts here instead of at dead index entries.
    head_rank integer not null default -2147483648,
    head_id bigint not null default 0,
    unique nulls not distinct (batch_id, task, tenant, key)
) with (fillfactor = 70);

create index lanes_open on lanes (task, ready_at)
    where blocked_by is null and (slots is null or running < slots);
create index lanes_parked on lanes (blocked_by, task, ready_at) where blocked_by is not null;

-- A limit counts the running jobs of every lane that its name fits: `system`, `task:T`, `tenant:N`,
-- `batch:B`, `key:K`, `task:T/tenant:N`, `task:T/key:K`, `task:T/batch:B`. A name that ends in `*`
-- counts nothing itself: it is the template of the limits that its place stands for.
create table limits (
    id bigint generated always as identity primary key,
    name text not null unique,
    template text generated always as (
        case when name like '%*' then null
            when name ~ '^(tenant|key|batch):' then split_part(name, ':', 1) || ':*'
            when name ~ '^task:[^/]+/' then regexp_replace(name, '^(task:[^/]+/[a-z]+:).*$', '\1*')
        end) stored,
    -- False for what lanes count themselves: the slots of a batch at one task, unless it is keyed.
    counts boolean generated always as (name not like 'task:%/batch:*') stored,
    -- What the code or the template declares, and what someone set over it.
    declared_slots integer check (declared_slots >= 0),
    declared_rate integer check (declared_rate > 0),
    declared_period double precision check (declared_period > 0),
    set_slots integer check (set_slots >= 0),
    set_rate integer check (set_rate > 0),
    set_period double precision check (set_period > 0),
    declared_paused boolean not null default false,
    paused boolean not null default false,
    running integer not null default 0 check (running >= 0),
    -- The starts of the last period: when, and how many.
    started_at timestamptz[] not null default '{}',
    started integer[] not null default '{}',
    -- True while lanes may be parked behind this limit; opens_at is when its rate lets one through.
    parked boolean not null default false,
    opens_at timestamptz,
    slots integer generated always as
        (case when paused or declared_paused then 0 else coalesce(set_slots, declared_slots) end) stored,
    rate integer generated always as (coalesce(set_rate, declared_rate)) stored,
    period double precision generated always as (coalesce(set_period, declared_period)) stored
) with (fillfactor = 70);

create index limits_by_template on limits (template) where template is not null;
create index limits_counting on limits (id) where counts;
create index limits_templates on limits (name) where name like '%*';
create index limits_parked on limits (id) where parked;

create sequence fences;

create table workers (
    id bigint generated always as identity primary key,
    name text not null,
    version text not null,
    tasks text[] not null,
    concurrency integer not null,
    state text not null default 'live' check (state in ('live', 'draining', 'stopped', 'lost')),
    idle boolean not null default false,
    started_at timestamptz not null,
    lease_until timestamptz not null
) with (fillfactor = 70);

create index workers_idle on workers (id) where idle and state = 'live';

create table jobs (
    id bigint generated always as identity primary key,
    batch_id uuid,
    position integer not null,
    lane_id bigint,
    task text not null,
    tenant text not null,
    key text not null default '',
    state job_state not null,
    priority integer not null default 0,
    run_at timestamptz not null,
    attempt integer not null default 0,
    snoozes integer not null default 0,
    -- Known to the attempt that runs and to nobody else: who has it owns the job. Null while none does.
    fence bigint,
    worker_id bigint,
    started_at timestamptz,
    cancelled_at timestamptz,
    watched boolean not null default false,
    dedup_key text,
    cache_key text,
    payload json not null,
    progress json,
    checkpoints jsonb,
    attempts jsonb,
    labels jsonb,
    created_at timestamptz not null,
    expires_on date not null,
    -- Which transaction submitted a job that no claim has put into a lane yet.
    submitted_by xid8
) with (fillfactor = 85);

-- `id + 0` keeps the order; a plain id here would tempt the planner to look ids up in these while
-- the table is small, and to go on doing so when it is not.
create index jobs_queue on jobs (lane_id, state, (-priority), (id + 0));
create index jobs_scheduled on jobs (lane_id, run_at, (-priority), (id + 0)) where state = 'scheduled';
create index jobs_running on jobs (worker_id) where state = 'running';
create index jobs_submitted on jobs (submitted_by) where lane_id is null;
create unique index jobs_dedup on jobs (tenant, dedup_key) where dedup_key is not null;

create table finished (
    id bigint not null,
    batch_id uuid,
    position integer not null,
    task text not null,
    tenant text not null,
    key text not null default '',
    state job_state not null,
    priority integer not null,
    run_at timestamptz not null,
    attempt integer not null,
    snoozes integer not null,
    fence bigint,
    worker_id bigint,
    started_at timestamptz,
    finished_at timestamptz not null,
    cached boolean not null default false,
    dedup_key text,
    cache_key text,
    payload json not null,
    result json,
    error jsonb,
    progress json,
    checkpoints jsonb,
    attempts jsonb,
    labels jsonb,
    created_at timestamptz not null,
    expires_on date not null,
    primary key (id, expires_on)
) partition by range (expires_on);

create index finished_by_batch on finished (batch_id, position) where batch_id is not null;
create index finished_by_cache_key on finished (tenant, cache_key, finished_at desc)
    where cache_key is not null and state = 'completed';
create index finished_failed on finished (finished_at) where state = 'failed';
create index finished_by_time on finished using brin (finished_at) with (pages_per_range = 32);

create table events (
    batch_id uuid not null,
    number integer not null,
    tenant text not null,
    type text not null,
    job_id bigint,
    position integer,
    data json,
    at timestamptz not null,
    expires_on date not null,
    primary key (batch_id, number, expires_on)
) partition by range (expires_on);

create table finished_default partition of finished default;
create table events_default partition of events default;

create table schedules (
    name text primary key,
    task text not null,
    payload json not null,
    key text not null default '',
    tenant text not null,
    priority integer not null default 0,
    cron text not null,
    timezone text not null,
    missed text not null check (missed in ('once', 'skip', 'all')),
    paused boolean not null default false,
    next_at timestamptz not null,
    last_at timestamptz
);

create index schedules_due on schedules (next_at) where not paused;

-- Who does the upkeep, until when.
create table leases (
    name text primary key,
    worker_id bigint not null,
    until timestamptz not null
);

-- What ended in each minute, added up by the upkeep so that no page counts the history.
create table statistics (
    minute timestamptz not null,
    task text not null,
    state job_state not null,
    code text not null default '',
    jobs integer not null,
    wait_seconds double precision not null,
    run_seconds double precision not null,
    primary key (minute, task, state, code)
);
