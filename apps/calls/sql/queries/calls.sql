-- name: add_call
insert into calls.calls (id, tenant, upload_id, upload_size, name, provider, language)
values (%(id)s, %(tenant)s, %(upload)s, %(upload_size)s::integer, %(name)s, %(provider)s, %(language)s)
on conflict do nothing

-- name: delete_call
delete from calls.calls where id = %(id)s

-- name: list_calls
-- A page of calls, newest first, each with the state of its batch and of its only job.
select c.id, c.upload_id, c.upload_size, c.name, c.provider, c.language, c.created_at, b.state as batch_state,
    b.last_event, b.finished_at, j.task, j.progress, j.payload, j.result, j.error
from calls.calls c
join batchmill.batches b on b.id = c.id
cross join lateral (
    select task, progress, payload, null::json as result, null::jsonb as error from batchmill.jobs where batch_id = b.id
    union all
    select task, progress, payload, result, error from batchmill.finished
    where batch_id = b.id and expires_on = b.expires_on) j
where (%(id)s::uuid is null or c.id = %(id)s)
    and (%(upload)s::uuid is null or c.upload_id = %(upload)s)
    and (%(states)s::text[] is null or b.state::text = any (%(states)s))
    and (%(before)s::timestamptz is null or (c.created_at, c.id) < (%(before)s, %(before_id)s::uuid))
    and (%(words)s::text is null or exists (
        select from calls.transcripts t
        where t.call_id = c.id and t.words @@ websearch_to_tsquery(t.configuration, %(words)s)))
order by c.created_at desc, c.id desc
limit %(count)s::integer

-- name: find_moments
-- The sentences of these calls that have one of the words, the best ones of each call. `querytree` leaves out words that
-- must not occur.
select t.call_id, found.speaker, found.start_at, found.end_at, found.sentence
from calls.transcripts t
cross join lateral (
    select s.*, row_number() over (order by ts_rank_cd(said, wanted) desc, s.number) as place
    from calls.sentences s
    cross join lateral coalesce(s.words, calls.words_of(t.configuration, s.sentence)) as said
    cross join cast(
        replace(querytree(websearch_to_tsquery(t.configuration, %(words)s)), '&', '|') as tsquery) as wanted
    where s.call_id = t.call_id and said @@ wanted) found
where t.call_id = any (%(ids)s::uuid[]) and place <= %(each)s::integer
order by t.call_id, found.start_at

-- name: keep_transcript
-- Any number of attempts may keep a transcript, and the last one counts.
insert into calls.transcripts (call_id, tenant, configuration, words)
select id, tenant, %(configuration)s::regconfig, calls.words_of(%(configuration)s::regconfig, %(text)s)
from calls.calls where id = %(call)s
on conflict (call_id) do update set configuration = excluded.configuration, words = excluded.words

-- name: forget_sentences
delete from calls.sentences where call_id = %(call)s

-- name: keep_sentences
insert into calls.sentences (call_id, number, tenant, speaker, start_at, end_at, sentence, words)
select t.call_id, row_number() over (), t.tenant, s.speaker, s.start_at, s.end_at, s.sentence,
    calls.words_of(t.configuration, s.sentence)
from calls.transcripts t, json_to_recordset(%(sentences)s) as s (
    speaker integer, start_at double precision, end_at double precision, sentence text)
where t.call_id = %(call)s

-- name: newest_operation
-- One row for each call. Its number is null if the call has not started an operation.
select o.number, o.operation, o.failure, extract(epoch from clock_timestamp() - o.started_at)::float8 as age,
    (select progress from batchmill.jobs where id = %(job)s) as shown
from calls.calls c
left join lateral (
    select * from calls.operations where call_id = c.id and tenant = c.tenant order by number desc limit 1) o on true
where c.id = %(call)s and c.tenant = %(tenant)s

-- name: keep_operation
-- If two attempts started an operation each, the first one that is kept counts for both.
with kept as (
    insert into calls.operations (call_id, number, tenant, provider, operation)
    select id, %(number)s, tenant, %(provider)s, %(operation)s from calls.calls
    where id = %(call)s and tenant = %(tenant)s
    on conflict (call_id, number) do update set operation = operations.operation
    returning operation)
select operation from kept

-- name: end_operation
update calls.operations set failure = coalesce(failure, %(failure)s), ended_at = coalesce(ended_at, clock_timestamp())
where call_id = %(call)s and operation = %(operation)s

-- name: operations_of
select provider, operation, ended_at is null as is_open from calls.operations
where call_id = %(call)s and (%(tenant)s::text is null or tenant = %(tenant)s) order by number

-- name: orphans
select provider, operation from calls.orphans

-- name: delete_orphan
delete from calls.orphans where provider = %(provider)s and operation = %(operation)s

-- name: forgotten_calls
-- Calls whose batches have expired or were deleted.
select id from calls.calls c where not exists (select from batchmill.batches where id = c.id)
    and created_at < clock_timestamp() - interval '1 day'
