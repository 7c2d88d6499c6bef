-- Earlier versions created these tables without recording a version, so they may exist.

-- What was read, by the sheet's checksum and the swimmer: the same question gets the same code.
create table if not exists extractions (
    code text primary key,
    sha256 text not null,
    swimmer text not null,
    -- Who read it: another reader may read more.
    reader text not null,
    extraction jsonb not null,
    created_at timestamptz not null default clock_timestamp(),
    used_at timestamptz not null default clock_timestamp(),
    unique (sha256, swimmer, reader)
);

create index if not exists extractions_by_use on extractions (used_at);

-- Who asked for a batch. Not among its labels, which everyone sees who has the link.
create table if not exists askers (
    batch_id uuid primary key,
    user_agent text not null,
    referrer text not null,
    client_address text not null,
    created_at timestamptz not null default clock_timestamp()
);

-- Visitors by network address. The name of a visitor's tenant says nothing about the visitor.
create table if not exists visitors (
    network text primary key,
    tenant text not null unique,
    used_at timestamptz not null default clock_timestamp()
);
