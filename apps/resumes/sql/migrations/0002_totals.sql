-- How many documents were requested. The exports of a batch are forgotten one after the other.
alter table export_batches add column total integer;
update export_batches b set total = (select count(*) from batch_exports m where m.batch_id = b.id);
alter table export_batches alter column total set not null;
