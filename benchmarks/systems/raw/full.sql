-- The tables of lean.sql with a limit for each batch, counters and gapless events, as in batchmill.
create sequence fences;
create sequence turns;

create table batches (
    id bigint generated always as identity primary key,
    slots integer not null,
    total integer not null,
    waiting integer not null,
    running integer not null default 0,
    completed integer not null default 0,
    last_event integer not null default 0,
    turn bigint not null default 0
) with (fillfactor = 70);
create index batches_in_turn on batches (turn) where waiting > 0 and running < slots;

create table jobs (
    id bigint generated always as identity primary key,
    batch_id bigint not null,
    is_running boolean not null default false,
    fence bigint,
    payload json not null,
    started_at timestamptz
);
create index jobs_ready on jobs (batch_id, id) where not is_running;

create table finished (
    id bigint primary key,
    batch_id bigint not null,
    fence bigint,
    payload json not null,
    result json,
    started_at timestamptz,
    finished_at timestamptz
);

create table events (
    batch_id bigint not null,
    number integer not null,
    type text not null,
    job_id bigint,
    at timestamptz not null,
    primary key (batch_id, number)
);

create function submit(items json, batch_slots integer) returns void language sql as $$
    with batch as (
        insert into batches (slots, total, waiting)
        values (batch_slots, json_array_length(items), json_array_length(items)) returning id
    )
    insert into jobs (batch_id, payload)
    select batch.id, value from batch cross join json_array_elements(items)
$$;

create function claim(want integer) returns json language plpgsql as $$
declare
    held bigint[];
    claimed json;
begin
    held := array(
        select id from batches where waiting > 0 and running < slots
        order by turn limit want for update skip locked);
    with chosen as (
        select j.id from unnest(held) as h (id) join batches b on b.id = h.id
        cross join lateral (
            select id from jobs where batch_id = b.id and not is_running
            order by id limit b.slots - b.running) j
        limit want
    ), started as (
        update jobs set is_running = true, fence = nextval('fences'), started_at = clock_timestamp()
        where id = any (array(select id from chosen)) returning *
    ), counted as (
        update batches b
        set running = running + n, waiting = waiting - n, last_event = last_event + n,
            turn = nextval('turns')
        from (select batch_id, count(*)::integer as n from started group by batch_id) s
        where b.id = s.batch_id
        returning b.id, b.last_event - n as before
    ), told as (
        insert into events
        select s.batch_id, c.before + row_number() over (partition by s.batch_id order by s.id),
            'started', s.id, clock_timestamp()
        from started s join counted c on c.id = s.batch_id
    )
    select json_build_array(json_agg(id), json_agg(fence), json_agg(payload)) into claimed from started;
    return claimed;
end $$;

create function finish(ids bigint[], fences bigint[], results json) returns bigint
language plpgsql as $$
declare
    done bigint;
begin
    perform from batches where id in (select batch_id from jobs where id = any (ids))
    order by id for update;
    with ended as (
        select * from rows from (unnest(ids), unnest(fences), json_array_elements(results))
            as e (id, fence, result)
    ), gone as (
        delete from jobs j using ended e where j.id = e.id and j.fence = e.fence
        returning j.id, j.batch_id, j.fence, j.payload, e.result, j.started_at
    ), kept as (
        insert into finished select *, clock_timestamp() from gone
    ), counted as (
        update batches b
        set running = running - n, completed = completed + n,
            last_event = last_event + n + (completed + n = total)::integer
        from (select batch_id, count(*)::integer as n from gone group by batch_id) g
        where b.id = g.batch_id
        returning b.*, n
    ), told as (
        insert into events
        select g.batch_id, c.last_event - c.n - (c.completed = c.total)::integer
                + row_number() over (partition by g.batch_id order by g.id),
            'completed', g.id, clock_timestamp()
        from gone g join counted c on c.id = g.batch_id
        union all
        select id, last_event, 'batch_completed', null, clock_timestamp()
        from counted where completed = total
    )
    select count(*) into done from gone;
    return done;
end $$;
