set local search_path = batchmill, pg_catalog;

-- Items of a batch that have no job of their own, because a live job had their deduplication key.
create table duplicates (
    batch_id uuid not null,
    position integer not null,
    tenant text not null,
    -- The job that had the key. It has the same tenant. A single job has no batch.
    original_id bigint not null,
    original_batch_id uuid,
    original_expires_on date not null,
    primary key (batch_id, position)
);
