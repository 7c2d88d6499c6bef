-- Remembers the functions as they are, to see afterwards which of them were replaced.
create temporary table functions_before on commit drop as
select oid, xmin::text as version from pg_proc where pronamespace = 'batchmill'::regnamespace;
