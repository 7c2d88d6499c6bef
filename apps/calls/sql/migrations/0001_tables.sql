-- One row for each call. Its id is the id of its batch, which has the state.
create table calls (
    id uuid primary key,
    tenant text not null,
    upload_id uuid not null,
    name text not null,
    provider text not null,
    language text not null,
    created_at timestamptz not null default clock_timestamp()
);

create index calls_by_tenant on calls (tenant, created_at, id);

-- The operations that a call has started at its provider. One that failed is followed by the next number.
create table operations (
    call_id uuid not null references calls on delete cascade,
    number integer not null,
    tenant text not null,
    provider text not null,
    operation text not null,
    started_at timestamptz not null default clock_timestamp(),
    -- Null while it runs, and after it succeeded.
    failure text,
    ended_at timestamptz,
    primary key (call_id, number)
);

create index operations_by_tenant on operations (tenant);

-- The words of a whole call, to find the call. A row of a guarded table is checked for its tenant before its words are
-- compared, so an index on the words could not be used.
create table transcripts (
    call_id uuid primary key references calls on delete cascade,
    tenant text not null,
    -- How words of its language are reduced to their stems.
    configuration regconfig not null,
    words tsvector not null
);

create index transcripts_by_tenant on transcripts (tenant);

-- The sentences of a call, to find the moment.
create table sentences (
    call_id uuid not null references calls on delete cascade,
    number integer not null,
    tenant text not null,
    speaker integer not null,
    start_at double precision not null,
    end_at double precision not null,
    sentence text not null,
    primary key (call_id, number)
);

create index sentences_by_tenant on sentences (tenant);
