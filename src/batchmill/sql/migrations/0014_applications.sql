set local search_path = batchmill, pg_catalog;

-- The migrations of applications' own schemas.
create table application_versions (
    schema text not null,
    version integer not null,
    applied_at timestamptz not null default clock_timestamp(),
    primary key (schema, version)
);

-- Tenants that are being erased. A row is deleted when nothing else of its tenant is left.
create table erasures (
    tenant text primary key,
    requested_at timestamptz not null,
    -- When a process last worked on it. The upkeep takes over from a process that stopped.
    worked_at timestamptz
);

-- When the last erasure began. A writer whose snapshot is older fails: see refuse_erased().
create table last_erasure (
    id boolean primary key default true check (id),
    requested_at timestamptz
);

insert into last_erasure default values;
