-- Functions that processes of schema versions 8 to 11 call, for rolling upgrades. A later version removes them.

create or replace function claim(
    worker bigint, tasks text[], wants integer[], want integer, spare integer, since xid8,
    last_tenants text[] default null, last_tenant text default '', lot bigint default 0
) returns json
language sql
return claim_jobs(worker, tasks, wants, want, spare, since, last_tenants, last_tenant, lot);

create or replace function turn(
    ids bigint[], fences bigint[], kinds text[], details json, progress json, lanes bigint[],
    worker bigint, tasks text[], wants integer[], want integer, spare integer, since xid8,
    last_tenants text[] default null, last_tenant text default '', lot bigint default 0
) returns json
language sql
return finish_and_claim(ids, fences, kinds, details, progress, lanes, worker, tasks, wants, want, spare, since,
    last_tenants, last_tenant, lot);

create or replace function register_task(
    task_name text, retry jsonb, keyed boolean, payload_limit integer, declared jsonb,
    is_entry boolean default null
) returns void
language sql set search_path = batchmill, pg_catalog, pg_temp
return register_task(task_name, retry, keyed, payload_limit, declared, is_entry, null, null);
