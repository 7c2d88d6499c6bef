-- Pages of lists, bounded in rows and bytes.

-- The uncompressed size of a value, as it is sent to the client. Only compressed values have to be unpacked
-- for this.
create or replace function raw_size(value json) returns integer
language sql stable
return case when value is null then 0
    when pg_column_compression(value) is null then pg_column_size(value)
    else octet_length(value::text) end;

-- The last position of a page of a batch's jobs. A page has `most` jobs after a position, or fewer if their
-- payloads and results exceed `bytes`, but at least one. Null if there are no jobs. With `results_only`, it
-- is a page of ended jobs, and only their results count.
create or replace function page_end(
    of_batch uuid, after bigint, most bigint, bytes bigint, results_only boolean default false
) returns integer
language plpgsql stable
set search_path = batchmill, pg_catalog, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
declare
    job record;
    size bigint := 0;
    upto integer;
begin
    for job in
        select * from (
            (select position, payload, null::json as result from jobs
             where not results_only and batch_id = of_batch and position > after
             order by position limit most)
            union all
            (select position, case when not results_only then payload end, result from finished
             where batch_id = of_batch and position > after
               and expires_on = (select expires_on from batches where id = of_batch)
             order by position limit most)
        ) jobs order by position limit most
    loop
        size := size + raw_size(job.payload) + raw_size(job.result);
        exit when upto is not null and size > bytes;
        upto := job.position;
    end loop;
    return upto;
end $$;

-- A page of a batch's duplicates after a position, each with the current state of the job that it duplicates:
-- 'gone' if that job has expired or was deleted. A page has up to `most` entries, or fewer if their results
-- exceed `bytes`, but at least one. If `bytes` is null, it has no results.
create or replace function duplicates_of(of_batch uuid, after bigint, most bigint, bytes bigint)
returns table (
    "position" integer, job_id bigint, batch_id uuid, task text, state text, result json, error jsonb
)
language plpgsql stable
set search_path = batchmill, pg_catalog, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
#variable_conflict use_column
declare
    size bigint := 0;
begin
    for position, job_id, batch_id, task, state, result, error in
        select d.position, d.original_id, d.original_batch_id, coalesce(live.task, ended.task),
            coalesce(live.state::text, ended.state::text, 'gone'),
            case when bytes is not null then ended.result end, ended.error
        from duplicates d
        left join lateral (select task, state from jobs where id = d.original_id) live on true
        left join lateral (
            select task, state, result, error from finished
            where id = d.original_id and expires_on = d.original_expires_on) ended on true
        where d.batch_id = of_batch and d.position > after
        order by d.position limit most
    loop
        exit when size > 0 and size + raw_size(result) > bytes;
        size := size + greatest(raw_size(result), 1);
        return next;
    end loop;
end $$;
