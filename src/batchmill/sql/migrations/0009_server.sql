set local search_path = batchmill, pg_catalog;

-- The server that issued the newest fences, known by when it was started. There is one row.
create table server (
    is_only boolean primary key default true check (is_only),
    started_at timestamptz not null
);

insert into server (started_at) values (pg_postmaster_start_time());
