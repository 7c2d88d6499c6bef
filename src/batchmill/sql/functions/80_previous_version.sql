-- Functions that processes of schema versions 8 to 10 call, for rolling upgrades. A later version removes them.

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
