-- Locks: artifacts, artifact_uses, artifact_releases
set local search_path = batchmill, pg_catalog;

-- The job that made the file no longer needs it.
alter table artifacts add column is_released boolean not null default false;

-- `items` are now the positions of the items whose jobs still need the file. They are stored in blocks, so that a
-- release rewrites little: see item_block() in functions/70_artifacts.sql.
alter table artifact_uses
    add column block integer not null default 0,
    drop constraint artifact_uses_artifact_id_batch_id_job_id_key,
    add constraint artifact_uses_key unique nulls not distinct (artifact_id, batch_id, job_id, block);

-- A batch may have many files, and a file many batches: both indexes find one use.
drop index artifact_uses_by_batch;
create index artifact_uses_by_batch on artifact_uses (batch_id, artifact_id, block) where batch_id is not null;

insert into artifact_uses (artifact_id, tenant, batch_id, job_id, block, items)
select u.artifact_id, u.tenant, u.batch_id, u.job_id, b.block, u.items * b.range
from artifact_uses u
cross join lateral generate_series(1, (upper(u.items) - 1) / 256) as n (block)
cross join lateral (values (n.block, int4multirange(int4range(n.block * 256, (n.block + 1) * 256)))) as b (block, range)
where u.items && b.range;
update artifact_uses set items = items * '{[0,256)}' where block = 0 and upper(items) > 256;
delete from artifact_uses where isempty(items);

-- Releases are now a queue, which the upkeep empties. No foreign key: its check would make the end of a job wait for a
-- submit that names the file.
alter table artifact_releases
    add column id bigint generated always as identity,
    add column position integer,
    drop constraint artifact_releases_artifact_id_fkey,
    drop constraint artifact_releases_pkey,
    add primary key (artifact_id, id);
update artifact_releases r set position = j.position
from (select id, position from jobs union all select id, position from finished) j where j.id = r.job_id;
delete from artifact_releases where position is null;
alter table artifact_releases alter column position set not null;
