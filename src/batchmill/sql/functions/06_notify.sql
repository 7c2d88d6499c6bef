-- NOTIFY only makes things faster, and takes a lock at commit: nothing is sent unless someone waits.
create function notify_workers(of_tasks text[]) returns void
language plpgsql as $$
begin
    if exists (select from workers where idle and state = 'live' and tasks && of_tasks) then
        perform pg_notify('batchmill', 'work');
    end if;
end $$;

create function notify_watchers(batch_ids uuid[]) returns void
language plpgsql as $$
begin
    perform pg_notify('batchmill', 'batch:' || id) from unnest(batch_ids) as id;
end $$;
