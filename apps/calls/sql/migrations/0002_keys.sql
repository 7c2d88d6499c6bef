-- Locks: calls, operations, transcripts, sentences
-- Keys include the tenant, because checks of foreign keys ignore row-level security: a row of one tenant could name a
-- call of another.
alter table operations drop constraint operations_call_id_fkey;
alter table transcripts drop constraint transcripts_call_id_fkey;
alter table sentences drop constraint sentences_call_id_fkey;

alter table calls drop constraint calls_pkey, add primary key (id, tenant);
alter table operations drop constraint operations_pkey, add primary key (call_id, tenant, number),
    add foreign key (call_id, tenant) references calls on delete cascade;
alter table transcripts drop constraint transcripts_pkey, add primary key (call_id, tenant),
    add foreign key (call_id, tenant) references calls on delete cascade;
alter table sentences drop constraint sentences_pkey, add primary key (call_id, tenant, number),
    add foreign key (call_id, tenant) references calls on delete cascade;

-- The words of a text, to search in them. A text with more different words than a tsvector can hold is cut.
create function words_of(of_configuration regconfig, of_text text) returns tsvector
language plpgsql immutable set search_path = calls, pg_catalog, pg_temp as $$
begin
    return to_tsvector(of_configuration, of_text);
exception when program_limit_exceeded then
    return words_of(of_configuration, left(of_text, length(of_text) / 2));
end $$;

alter table sentences add column words tsvector;
update sentences s set words = words_of(t.configuration, s.sentence)
from transcripts t where t.call_id = s.call_id;
delete from sentences where words is null;
alter table sentences alter column words set not null;
