-- New names for functions: `claim_jobs`, `finish_and_claim`, `collect_garbage`. Tables stay as they are.
set local search_path = batchmill, pg_catalog;
