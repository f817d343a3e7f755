-- name: find_unfinished :one?
-- The copy that was being written into this database when it was last touched, if it has not ended.
SELECT copy, source, begun_at
FROM unfinished;
