set local search_path = batchmill, pg_catalog;

-- Whether tenants may submit to the task. Workers say so when they register it.
alter table tasks add column entry boolean not null default false;

-- How many mails went out in an hour, to an address (`to:` and its digest) and for a tenant (`for:…`).
create table mail_counts (
    who text not null,
    hour timestamptz not null,
    mails integer not null,
    primary key (who, hour)
);

create index mail_counts_by_hour on mail_counts (hour);
