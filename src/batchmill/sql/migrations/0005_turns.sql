-- Tenants take turns: a claim goes from tenant to tenant, so lanes are found by task and tenant.

set local search_path = batchmill, pg_catalog;

-- Whether `ready_at` has passed, as far as a claim has seen: an index cannot depend on the clock.
alter table lanes add column is_due boolean not null default false;
update lanes set is_due = true where ready_at <= clock_timestamp();

drop index lanes_open, lanes_parked;
create index lanes_open on lanes (task, tenant, ready_at) where is_open and is_due;
create index lanes_later on lanes (task, ready_at) where is_open and not is_due and ready_at is not null;
create index lanes_parked on lanes (blocked_by, task, tenant, ready_at) where blocked_by is not null;

-- Finds the tenants that have submitted jobs without a batch.
create index jobs_submitted_by_tenant on jobs (tenant, submitted_by) where lane_id is null;
