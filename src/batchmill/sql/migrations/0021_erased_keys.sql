-- Locks: last_erasure
set local search_path = batchmill, pg_catalog;

-- Whether an erasure has deleted keys. Then requests without a key stay refused, even if no key is left.
alter table last_erasure add column erased_keys boolean not null default false;
