-- What the service keeps: files, who may call, who is told, and what each tenant may use. Which rows a
-- tenant sees is decided in functions/90_guard.sql, for every table that has a column `tenant`.

set local search_path = batchmill, pg_catalog;

-- Bytes lie in the artifact store under `storage_key`; a row is there before them and after them, so
-- whatever was left behind is found here. Outputs are `stored` until the attempt that wrote them ends,
-- and `kept` if it ended well. The upkeep removes what is `gone`, first the bytes and then the row.
create table artifacts (
    id uuid primary key default gen_random_uuid(),
    tenant text not null,
    kind text not null check (kind in ('input', 'output')),
    state text not null default 'writing' check (state in ('writing', 'stored', 'kept', 'gone')),
    -- Where an output was made, or the first batch that took an input.
    batch_id uuid,
    job_id bigint,
    fence bigint,
    name text not null check (length(name) between 1 and 255),
    media_type text not null,
    -- While bytes come, how many there may be: so the sum of a tenant's sizes is what its files take up.
    size bigint not null default 0 check (size >= 0),
    sha256 text check (sha256 ~ '^[0-9a-f]{64}$'),
    storage_key text not null unique,
    downloads bigint not null default 0,
    created_at timestamptz not null,
    -- While bytes come, when some came last.
    written_at timestamptz not null,
    expires_at timestamptz not null,
    -- From when on it can be removed; known once it is gone.
    collect_at timestamptz,
    check ((kind = 'output') = (fence is not null)),
    check (state = 'writing' or state = 'gone' or sha256 is not null),
    check ((state = 'gone') = (collect_at is not null))
);

create index artifacts_by_tenant on artifacts (tenant, created_at desc, id);
create index artifacts_by_batch on artifacts (batch_id) where batch_id is not null;
create index artifacts_by_job on artifacts (job_id) where job_id is not null;
create index artifacts_by_expiry on artifacts (expires_at) where state in ('stored', 'kept');
create index artifacts_coming on artifacts (written_at) where state = 'writing';
create index artifacts_unsettled on artifacts (fence) where state in ('writing', 'stored') and fence is not null;
create index artifacts_to_collect on artifacts (collect_at) where collect_at is not null;

-- Whose payloads or cached results name an artifact, a batch's or a single job's: it lives until the last
-- of them expires or is deleted.
create table artifact_uses (
    artifact_id uuid not null references artifacts on delete cascade,
    tenant text not null,
    batch_id uuid,
    job_id bigint,
    unique nulls not distinct (artifact_id, batch_id, job_id)
);

create index artifact_uses_by_batch on artifact_uses (batch_id) where batch_id is not null;

-- `id` is the part of a key that may be seen; of the rest only a digest is kept.
create table api_keys (
    id text primary key,
    tenant text not null,
    name text not null,
    digest bytea not null,
    scopes text[] not null check (scopes <@ '{read,submit,admin}'),
    created_at timestamptz not null,
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz
);

-- Which key signs links, and which ones are still believed: the newest signs.
create table signing_keys (
    id integer generated always as identity primary key,
    secret bytea not null,
    created_at timestamptz not null
);

-- What a tenant may use; the tenant `*` stands for all that have no row of their own. Null: no bound.
create table quotas (
    tenant text primary key,
    requests_per_minute integer check (requests_per_minute > 0),
    active_jobs integer check (active_jobs > 0),
    operations_per_day integer check (operations_per_day > 0),
    storage_bytes bigint check (storage_bytes > 0)
);

-- What a tenant has used: in the minute and on the day named, and in the store.
create table usage (
    tenant text primary key,
    minute timestamptz not null,
    requests integer not null default 0,
    day date not null,
    operations integer not null default 0,
    stored_bytes bigint not null default 0 check (stored_bytes >= 0)
) with (fillfactor = 50);

create index batches_active on batches (tenant) where finished_at is null;

-- Where finished batches are told, by POST. After a rotation the old secret signs too, for a while.
create table webhooks (
    id uuid primary key default gen_random_uuid(),
    tenant text not null,
    url text not null,
    secret text not null,
    old_secret text,
    rotated_until timestamptz,
    created_at timestamptz not null,
    disabled_at timestamptz,
    disabled_because text,
    check (num_nulls(old_secret, rotated_until) in (0, 2)),
    unique (tenant, url)
);

-- Who is to be told when a batch finishes: a webhook or an address of mail.
create table notifications (
    id uuid primary key default gen_random_uuid(),
    tenant text not null,
    batch_id uuid not null,
    webhook_id uuid,
    email text,
    created_at timestamptz not null,
    -- The batch's generation that was told of last, and the job that does so.
    told_generation integer not null default 0,
    job_id bigint,
    -- Later than the batch, so that what was told of it can still be delivered.
    expires_at timestamptz not null,
    check (num_nonnulls(webhook_id, email) = 1),
    unique nulls not distinct (batch_id, webhook_id, email)
);

create index notifications_by_expiry on notifications (expires_at);

-- Tenants name their schedules themselves. `error` says why the last time passed without a job.
alter table schedules
    drop constraint schedules_pkey, add primary key (tenant, name),
    add column error text;
