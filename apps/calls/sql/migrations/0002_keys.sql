-- Locks: calls, operations, transcripts, sentences
-- Servers of the previous version may still run after this migration. Their statements need the primary keys of the
-- first migration (`on conflict (call_id, number)`), and insert no `words`. So the keys stay, and the column may be null.

-- Checks of foreign keys ignore row-level security: a row of one tenant could name a call of another. So they compare
-- the tenant too.
alter table calls add unique (id, tenant);
alter table operations drop constraint operations_call_id_fkey,
    add foreign key (call_id, tenant) references calls (id, tenant) on delete cascade;
alter table transcripts drop constraint transcripts_call_id_fkey,
    add foreign key (call_id, tenant) references calls (id, tenant) on delete cascade;
alter table sentences drop constraint sentences_call_id_fkey,
    add foreign key (call_id, tenant) references calls (id, tenant) on delete cascade;

-- The words of a text, to search in them. A text with more different words than a tsvector can hold is cut.
create function words_of(of_configuration regconfig, of_text text) returns tsvector
language plpgsql immutable set search_path = calls, pg_catalog, pg_temp as $$
begin
    return to_tsvector(of_configuration, of_text);
exception when program_limit_exceeded then
    return words_of(of_configuration, left(of_text, length(of_text) / 2));
end $$;

-- Null in rows of the previous version: a search computes the words of these rows. Once no server of that version runs,
-- a later migration can fill the column and set it not null.
alter table sentences add column words tsvector;
