-- Locks: tasks, limits
set local search_path = batchmill, pg_catalog;

-- When a worker's slots are scarce, jobs of the task with the higher priority start first. An operator may override
-- what the code declares.
alter table tasks
    add column declared_priority integer not null default 0,
    add column set_priority integer,
    add column priority integer not null generated always as (coalesce(set_priority, declared_priority)) stored;
create index tasks_with_priority on tasks (name) where priority <> 0;

-- The function `template_of` knows the templates of pipelines too, and replaces the column. Processes of the previous
-- version still read the column.
drop index limits_by_template;
