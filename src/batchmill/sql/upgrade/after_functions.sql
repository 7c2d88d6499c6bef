-- Functions that were not replaced are not of this version: processes of the previous one still call them. They are
-- retired, and a later version drops them.
do $$
declare
    function record;
begin
    for function in
        select p.oid::regprocedure as name, p.xmin::text = b.version as is_retired from pg_proc p
        join functions_before b using (oid)
        where (p.xmin::text = b.version) = (obj_description(p.oid, 'pg_proc') is null)
    loop
        execute format('comment on function %s is %L', function.name,
            case when function.is_retired then 'Retired by version {version}' end);
    end loop;
end $$;
drop table functions_before;
