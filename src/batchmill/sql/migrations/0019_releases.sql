-- Locks: artifact_uses
set local search_path = batchmill, pg_catalog;

-- The positions of the items that name the file. Null in rows of earlier versions, whose files are not released.
alter table artifact_uses add column items int4multirange;

-- Jobs that no longer need a file, although their batch still runs.
create table artifact_releases (
    artifact_id uuid not null references artifacts on delete cascade,
    tenant text not null,
    batch_id uuid,
    job_id bigint not null,
    primary key (artifact_id, job_id)
);
