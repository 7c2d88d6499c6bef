-- name: prepare
-- Two servers that start at once would both find that it is not there.
select pg_advisory_xact_lock(hashtext('heatsync'));

create schema if not exists heatsync;

-- What was read, by the sheet's checksum and the swimmer: the same question gets the same code.
create table if not exists heatsync.extractions (
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

create index if not exists extractions_by_use on heatsync.extractions (used_at);

-- Who asked for a batch. Not among its labels, which everyone sees who has the link.
create table if not exists heatsync.askers (
    batch_id uuid primary key,
    user_agent text not null,
    referrer text not null,
    client_address text not null,
    created_at timestamptz not null default clock_timestamp()
);

-- Visitors by network address. The tenant that one is has a name that tells nothing.
create table if not exists heatsync.visitors (
    network text primary key,
    tenant text not null unique,
    used_at timestamptz not null default clock_timestamp()
);

-- name: meet_visitor
insert into heatsync.visitors (network, tenant)
values (%(network)s, %(prefix)s || gen_random_uuid())
on conflict (network) do update set used_at = clock_timestamp()
returning tenant

-- name: find_extraction
update heatsync.extractions set used_at = clock_timestamp()
where sha256 = %(sha256)s and swimmer = %(swimmer)s and reader = %(reader)s
returning code, extraction

-- name: get_extraction
update heatsync.extractions set used_at = clock_timestamp() where code = %(code)s
returning code, extraction

-- name: keep_extraction
insert into heatsync.extractions (code, sha256, swimmer, reader, extraction)
values (%(code)s, %(sha256)s, %(swimmer)s, %(reader)s, %(extraction)s)
on conflict do nothing returning code, extraction

-- name: keep_asker
insert into heatsync.askers (batch_id, user_agent, referrer, client_address)
values (%(batch)s, %(user_agent)s, %(referrer)s, %(client_address)s)

-- name: forget
with old_askers as (
    delete from heatsync.askers where created_at < clock_timestamp() - make_interval(days => %(days)s::integer)
), old_visitors as (
    delete from heatsync.visitors where used_at < clock_timestamp() - make_interval(days => %(days)s::integer))
delete from heatsync.extractions where used_at < clock_timestamp() - make_interval(days => %(days)s::integer)
