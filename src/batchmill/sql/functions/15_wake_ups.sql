-- Wake-ups by NOTIFY, for waiting processes.

-- NOTIFY only makes things faster, and takes a lock at commit. So send nothing unless a process waits.
create or replace function notify_workers(of_tasks text[]) returns void
language plpgsql as $$
begin
    if exists (select from workers where idle and state = 'live' and tasks && of_tasks) then
        perform pg_notify('batchmill', 'work');
    end if;
end $$;

-- Every role that can connect can listen, so a notification names no batch and no job. A topic is a digest
-- with a key that only the engine has.
create or replace function topic(name text) returns text
language plpgsql stable as $$
begin
    return (select left(encode(sha256(secret || convert_to(topic.name, 'UTF8')), 'hex'), 32) from topic_key);
end $$;

-- For processes of the engine, which wait for topics.
create or replace function listening_key() returns bytea
language plpgsql stable security definer set search_path = batchmill, pg_catalog, pg_temp as $$
begin
    return (select secret from topic_key where seen_tenant() is null);
end $$;

-- Requests notifications of the events of a batch for the next minute; `watch_job` requests one at the end of
-- a job.
create or replace function watch_batch(of_batch uuid) returns void
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
begin
    update batches set watched_until = clock() + interval '60 s'
    where id = of_batch and is_own(tenant)
      and (watched_until is null or watched_until < clock() + interval '30 s');
end $$;

create or replace function watch_job(of_job bigint) returns void
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
begin
    update jobs set watched = true where id = of_job and is_own(tenant) and not watched;
end $$;

create or replace function notify_watchers(batch_ids uuid[]) returns void
language plpgsql as $$
begin
    perform pg_notify('batchmill', topic('batch:' || id)) from unnest(batch_ids) as id;
end $$;
