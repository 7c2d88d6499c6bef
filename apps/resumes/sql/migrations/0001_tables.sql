-- A document as its owner wrote it.
create table documents (
    id uuid primary key,
    tenant text not null,
    version integer not null,
    -- The person that it is about, and what they do.
    name text not null,
    label text,
    content json not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    -- Set while it is being deleted. No export begins any more, and its waiting exports are cancelled.
    deleted_at timestamptz
);

create index documents_by_tenant on documents (tenant, created_at, id);
create index documents_to_delete on documents (id) where deleted_at is not null;

-- One row for each export. Its id is the id of its batch, which has the state. There is no reference to the document,
-- because the history outlives it.
create table exports (
    id uuid primary key,
    tenant text not null,
    document_id uuid not null,
    document_version integer not null,
    document_name text not null,
    template text not null,
    -- A digest of the document's id, its version and the options. Requests with the same one share an export.
    fingerprint text not null,
    file_name text not null,
    download_count integer not null default 0,
    created_at timestamptz not null,
    -- Null: some days after the export has ended.
    expires_at timestamptz,
    -- When it expired, or was deleted. From then on this row has what its batch had, because the batch is deleted.
    closed_at timestamptz,
    is_deleted boolean not null default false,
    status text,
    finished_at timestamptz,
    file_size bigint,
    page_count integer,
    warnings json,
    error jsonb
);

create index exports_by_tenant on exports (tenant, created_at, id);
create index exports_by_fingerprint on exports (fingerprint);
create index exports_by_document on exports (document_id);
create index exports_by_close on exports (closed_at);

-- Exports that were requested together.
create table export_batches (
    id uuid primary key,
    tenant text not null,
    created_at timestamptz not null
);

create index export_batches_by_tenant on export_batches (tenant, created_at, id);

-- The same export may be at several positions, and in several batches.
create table batch_exports (
    batch_id uuid not null references export_batches on delete cascade,
    position integer not null,
    tenant text not null,
    export_id uuid not null references exports on delete cascade,
    primary key (batch_id, position)
);

create index batch_exports_by_export on batch_exports (export_id);
create index batch_exports_by_tenant on batch_exports (tenant);
