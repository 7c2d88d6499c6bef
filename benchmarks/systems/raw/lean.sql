-- The minimum with a history and fences: one table of live jobs and one of finished jobs.
create sequence fences;

create table jobs (
    id bigint generated always as identity primary key,
    is_running boolean not null default false,
    fence bigint,
    payload json not null,
    started_at timestamptz
);
create index jobs_ready on jobs (id) where not is_running;

create table finished (
    id bigint primary key,
    fence bigint,
    payload json not null,
    result json,
    started_at timestamptz,
    finished_at timestamptz
);

create function enqueue(items json, slots integer) returns void language sql as $$
    insert into jobs (payload) select value from json_array_elements(items)
$$;

create function claim(want integer) returns json language sql as $$
    with started as (
        update jobs set is_running = true, fence = nextval('fences'), started_at = clock_timestamp()
        where id = any (array(
            select id from jobs where not is_running order by id limit want for update skip locked))
        returning id, fence, payload
    )
    select json_build_array(json_agg(id), json_agg(fence), json_agg(payload)) from started
$$;

create function finish(ids bigint[], fences bigint[], results json) returns bigint language sql as $$
    with ended as (
        select * from rows from (unnest(ids), unnest(fences), json_array_elements(results))
            as e (id, fence, result)
    ), gone as (
        delete from jobs j using ended e where j.id = e.id and j.fence = e.fence
        returning j.id, j.fence, j.payload, e.result, j.started_at
    ), kept as (
        insert into finished select *, clock_timestamp() from gone returning 1
    )
    select count(*) from kept
$$;
