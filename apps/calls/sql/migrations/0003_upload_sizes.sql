-- Locks: calls
-- The number of calls that the upload began with. If fewer exist, some were deleted. Null in rows of earlier versions.
alter table calls add column upload_size integer;
