-- Locks: jobs, lanes
set local search_path = batchmill, pg_catalog;

-- A tenant's jobs without a batch are counted by their lanes: an index of the jobs themselves costs every
-- submit and every start an entry.
drop index jobs_single;
create index lanes_single on lanes (tenant) where batch_id is null;

-- The oldest version whose processes can go on with this one: see store/migrate.py.
alter table schema_version add column serves integer;
