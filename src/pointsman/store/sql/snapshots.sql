-- name: add_snapshots@sqlite :none
-- A JSON array of objects: one, or those that a batch makes due.
INSERT INTO snapshots (task, version, body)
SELECT value ->> 'task', value ->> 'version', value ->> 'body'
FROM json_each(:rows);

-- name: add_snapshots@postgres :none
INSERT INTO snapshots (task, version, body)
SELECT task, version, body
FROM json_populate_recordset(CAST(NULL AS snapshots), CAST(:rows AS json));

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
