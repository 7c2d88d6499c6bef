-- Locks: batches
set local search_path = batchmill, pg_catalog;

-- The transaction that submitted or last retried the batch: feeds find batches with new events by it. Null in
-- rows of earlier versions.
alter table batches add column begun_by xid8;
alter table batches alter column begun_by set default pg_current_xact_id();
create index batches_by_begin on batches (tenant, begun_by);
create index batches_by_label on batches using gin (labels jsonb_path_ops) where labels <> '{}';

-- The events of several batches in one order: of all batches of a tenant, or of those with one label.
create table feeds (
    id bigint generated always as identity primary key,
    tenant text not null,
    -- Empty for all batches of the tenant.
    label text not null,
    value text not null,
    last_number bigint not null default 0,
    -- All batches that were visible in this snapshot are in `feed_batches`.
    seen pg_snapshot,
    -- The hour of the last use.
    used_at timestamptz not null,
    unique (tenant, label, value)
) with (fillfactor = 50);

create index feeds_by_use on feeds (used_at);

-- The batches of a feed. `upto` is the last event of the batch that has a number in the feed. A batch is open
-- until it has finished and all its events have numbers; a retry opens it again.
create table feed_batches (
    feed_id bigint not null references feeds on delete cascade,
    tenant text not null,
    batch_id uuid not null,
    upto integer not null default 0,
    is_open boolean not null default true,
    primary key (feed_id, batch_id)
) with (fillfactor = 70);

create index feed_batches_open on feed_batches (feed_id) where is_open;
create index feed_batches_by_batch on feed_batches (batch_id);

-- Which events have which numbers: `count` events of the batch, the last of which is `upto` in the batch and
-- `last_number` in the feed.
create table feed_blocks (
    feed_id bigint not null,
    tenant text not null,
    last_number bigint not null,
    batch_id uuid not null,
    upto integer not null,
    count integer not null,
    primary key (feed_id, last_number),
    foreign key (feed_id, batch_id) references feed_batches on delete cascade
);

create index feed_blocks_by_batch on feed_blocks (feed_id, batch_id);
