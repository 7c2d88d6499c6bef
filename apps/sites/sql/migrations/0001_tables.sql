-- One row for each run. Its id is the id of its batch, which has the state.
create table runs (
    id uuid primary key,
    tenant text not null,
    url text not null,
    -- The host of the address, without www. Runs of the same site can be compared.
    site text not null,
    -- The run that this one repeats.
    repeats uuid,
    created_at timestamptz not null
);

create index runs_by_tenant on runs (tenant, created_at, id);
create index runs_by_site on runs (tenant, site, created_at, id);
create index runs_by_time on runs (created_at);
