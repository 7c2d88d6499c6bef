-- Locks: operations
-- Operations that still ran when their rows were deleted, because their organisation was erased. A schedule cancels
-- them at their providers. A row does not say whose it was, so that nothing of an erased organisation remains.
create table orphans (
    provider text not null,
    operation text not null,
    primary key (provider, operation)
);

create function remember_orphan() returns trigger
language plpgsql security definer set search_path = calls, pg_catalog, pg_temp as $$
begin
    insert into orphans values (old.provider, old.operation) on conflict do nothing;
    return null;
end $$;

create trigger remember_orphan after delete on operations for each row
when (old.ended_at is null) execute function remember_orphan();
