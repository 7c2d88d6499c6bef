-- Drops functions that an earlier version has retired. Without `cascade`: a function that an object of a user depends
-- on stays.
do $$
declare
    retired regprocedure;
    is_done boolean := false;
begin
    -- Functions depend on each other, so it takes several rounds.
    while not is_done loop
        is_done := true;
        for retired in
            select oid from pg_proc
            where pronamespace = 'batchmill'::regnamespace
              and substring(obj_description(oid, 'pg_proc') from '^Retired by version ([0-9]+)')::integer < {version}
        loop
            begin
                execute format('drop function %s', retired);
                is_done := false;
            exception when dependent_objects_still_exist then
                raise notice 'Another object depends on %, so it is not dropped.', retired;
            end;
        end loop;
    end loop;
end $$;
