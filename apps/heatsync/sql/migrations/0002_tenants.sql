-- Locks: askers, extractions
-- Every row about a visitor names its tenant, so that erasing the tenant deletes it.

-- Processes of the previous version insert rows without a tenant.
create function fill_in_tenant() returns trigger
language plpgsql as $$
begin
    new.tenant := coalesce(new.tenant, (select tenant from batchmill.batches where id = new.batch_id));
    return new;
end $$;

alter table askers add column tenant text;
update askers a set tenant = b.tenant from batchmill.batches b where b.id = a.batch_id;
-- Their batches have been deleted.
delete from askers where tenant is null;
create trigger asker_has_tenant before insert on askers for each row execute function fill_in_tenant();
create index askers_by_tenant on askers (tenant);

-- Whose sheets an extraction was read from. Visitors share extractions, so one is deleted with its last use.
create table extraction_uses (
    tenant text not null,
    code text not null references extractions on delete cascade,
    primary key (tenant, code)
);

create index extraction_uses_by_code on extraction_uses (code);
insert into extraction_uses (tenant, code)
select distinct f.tenant, e.code from batchmill.finished f join extractions e on e.code = f.result ->> 'resultCode'
where f.state = 'completed' and starts_with(f.task, 'heatsync.');

create function forget_unused() returns trigger
language plpgsql as $$
begin
    -- Locks them first: a use that another transaction has just added is visible to the next statement.
    perform from heatsync.extractions where code in (select code from gone) order by code for update;
    delete from heatsync.extractions e
    where code in (select code from gone) and not exists (
        select from heatsync.extraction_uses u where u.code = e.code);
    return null;
end $$;

create trigger extraction_is_used after delete on extraction_uses
referencing old table as gone for each statement execute function forget_unused();
