-- name: add_snapshot :none
INSERT INTO snapshots (task, version, body) VALUES (:task, :version, :body);

-- name: snapshot_before :one?
-- The last snapshot at or before a version.
SELECT s.version, s.body
FROM snapshots AS s
JOIN tasks AS t ON t.key = s.task
WHERE t.id = :task AND s.version <= :version
ORDER BY s.version DESC
LIMIT 1;

-- name: snapshots_of :many
SELECT version, body
FROM snapshots
WHERE task = :task
ORDER BY version;
