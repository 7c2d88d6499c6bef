-- Lists of a batch's jobs cost the same at any size, and a cancelled batch ends in steps.

set local search_path = batchmill, pg_catalog;

-- A job that starts stays in its place here, as it does in the other indexes.
create index jobs_by_batch on jobs (batch_id, position) where batch_id is not null;

-- Most jobs complete, and pay nothing for these two. Not one with the state as a column: a policy of
-- row-level security keeps a condition on an enum from being looked up.
create index finished_failed_by_batch on finished (batch_id, position)
    where batch_id is not null and state = 'failed';
create index finished_cancelled_by_batch on finished (batch_id, position)
    where batch_id is not null and state = 'cancelled';

create index batches_cancelling on batches (cancelled_at) where cancelled_at is not null and finished_at is null;
