-- Limits that handlers enter themselves: `provider:NAME`.
set local search_path = batchmill, pg_catalog;

-- They are not rows of `limits`: every claim reads that table, and locks and counts its rows for lanes.
create table providers (
    id bigint generated always as identity primary key,
    name text not null unique check (name like 'provider:_%'),
    -- What the code declares, and what an operator has set over it.
    declared_slots integer check (declared_slots >= 0),
    declared_rate integer check (declared_rate > 0),
    declared_period double precision check (declared_period > 0),
    set_slots integer check (set_slots >= 0),
    set_rate integer check (set_rate > 0),
    set_period double precision check (set_period > 0),
    paused boolean not null default false,
    -- The starts of the last period: when, and how many.
    started_at timestamptz[] not null default '{}',
    started integer[] not null default '{}',
    slots integer generated always as
        (case when paused then 0 else coalesce(set_slots, declared_slots) end) stored,
    rate integer generated always as (coalesce(set_rate, declared_rate)) stored,
    period double precision generated always as (coalesce(set_period, declared_period)) stored
) with (fillfactor = 50);

-- The slots that attempts hold, and those that they wait for: `granted_at` is null while one waits. A worker numbers
-- its rows itself, so it can repeat a call whose answer was lost.
create table holds (
    worker_id bigint not null,
    number bigint not null,
    provider_id bigint not null,
    ticket bigint generated always as identity,
    job_id bigint not null,
    fence bigint not null,
    granted_at timestamptz,
    primary key (worker_id, number)
);
-- Without the time of the lease, so that heartbeats change no index.
create index workers_leased on workers (id) where state in ('live', 'draining');

create index holds_granted on holds (provider_id) where granted_at is not null;
create index holds_waiting on holds (provider_id, ticket) where granted_at is null;
