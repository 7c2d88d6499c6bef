set local search_path = batchmill, pg_catalog;

-- What a worker reports about its slots: the sizes of its pools, and the slots that have a number.
create table worker_slots (
    worker_id bigint primary key,
    pools jsonb not null,
    slots jsonb not null
);
