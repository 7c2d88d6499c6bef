-- Amounts that handlers record with `job.use`: tokens, seconds, pages, money.
set local search_path = batchmill, pg_catalog;

-- Totals of each day in UTC. They stay when batches expire: see tidy() in functions/61_upkeep.sql.
create table daily_usage (
    tenant text not null,
    day date not null,
    task text not null,
    name text not null,
    -- NaN is greater than infinity, so this refuses both.
    amount numeric not null check (amount >= 0 and amount < 'infinity'),
    primary key (tenant, day, task, name)
) with (fillfactor = 70);

create index daily_usage_by_day on daily_usage (day);

-- Totals of each batch. They are deleted with the batch.
create table batch_usage (
    batch_id uuid not null,
    task text not null,
    name text not null,
    tenant text not null,
    amount numeric not null check (amount >= 0 and amount < 'infinity'),
    primary key (batch_id, task, name)
) with (fillfactor = 70);
