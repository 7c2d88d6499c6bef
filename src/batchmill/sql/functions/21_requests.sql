-- Idempotency keys: requests with the same key run one after the other, and the later ones get the result of the
-- first.

-- The advisory lock of an idempotency key. If two keys share a lock, they only wait for each other.
create or replace function request_lock(of_tenant text, of_key text) returns bigint
language sql stable
return hashtextextended('batchmill.request', hashtextextended(of_tenant, hashtextextended(of_key, 0)));

-- Holds an idempotency key until the transaction ends. Returns false at once if another transaction holds it,
-- so that the caller can wait without a connection.
create or replace function hold_request(of_tenant text, of_key text) returns boolean
language plpgsql security definer set search_path = batchmill, pg_catalog, pg_temp as $$
begin
    return pg_try_advisory_xact_lock(request_lock(coalesce(acting_tenant(), of_tenant), of_key));
end $$;

-- Takes an idempotency key, or returns the request that has it. A second request waits here until the first
-- has committed, unless its transaction already holds the key. A null digest means that the caller is still
-- reading its input.
create or replace function take_request(of_tenant text, of_key text, of_digest text, expiry timestamptz)
returns requests
language plpgsql as $$
declare
    known requests;
begin
    perform pg_advisory_xact_lock(request_lock(of_tenant, of_key));
    insert into requests (tenant, key, digest, expires_at) values (of_tenant, of_key, of_digest, expiry)
    on conflict do nothing;
    if not found then
        select * into known from requests where tenant = of_tenant and key = of_key;
        if known.digest <> of_digest then
            raise exception 'The idempotency key "%" was used for another request.', of_key
                using errcode = 'BM004';
        end if;
    end if;
    return known;
end $$;
