-- name: meet_visitor
insert into heatsync.visitors (network, tenant)
values (%(network)s, %(prefix)s || gen_random_uuid())
on conflict (network) do update set used_at = clock_timestamp()
returning tenant

-- name: find_extraction
with found as (
    update heatsync.extractions set used_at = clock_timestamp()
    where sha256 = %(sha256)s and swimmer = %(swimmer)s and reader = %(reader)s
    returning code, extraction
), used as (
    insert into heatsync.extraction_uses (tenant, code) select %(tenant)s::text, code from found on conflict do nothing)
select code, extraction from found

-- name: get_extraction
update heatsync.extractions set used_at = clock_timestamp() where code = %(code)s
returning code, extraction

-- name: keep_extraction
with kept as (
    insert into heatsync.extractions (code, sha256, swimmer, reader, extraction)
    values (%(code)s, %(sha256)s, %(swimmer)s, %(reader)s, %(extraction)s)
    on conflict do nothing returning code
), used as (
    insert into heatsync.extraction_uses (tenant, code) select %(tenant)s::text, code from kept)
select code from kept

-- name: keep_asker
insert into heatsync.askers (batch_id, tenant, user_agent, referrer, client_address)
select id, tenant, %(user_agent)s, %(referrer)s, %(client_address)s from batchmill.batches where id = %(batch)s

-- name: forget
with old_askers as (
    delete from heatsync.askers where created_at < clock_timestamp() - make_interval(days => %(days)s::integer)
), old_visitors as (
    delete from heatsync.visitors where used_at < clock_timestamp() - make_interval(days => %(days)s::integer))
delete from heatsync.extractions where used_at < clock_timestamp() - make_interval(days => %(days)s::integer)
