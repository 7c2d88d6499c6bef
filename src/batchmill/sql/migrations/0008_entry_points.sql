set local search_path = batchmill, pg_catalog;

-- Whether tenants may submit to the task. Workers say so when they register it.
alter table tasks add column entry boolean not null default false;

-- The mails of the last hour, by the job that sends them.
create table mails (
    job_id bigint primary key,
    tenant text not null,
    -- A digest of the address.
    recipient text not null,
    sent_at timestamptz not null
);

create index mails_by_tenant on mails (tenant, sent_at);
create index mails_by_recipient on mails (recipient, sent_at);
create index mails_by_time on mails (sent_at);
