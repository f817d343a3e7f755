-- name: take_key@sqlite :none
-- Whoever writes is alone.
SELECT :principal, :key;

-- name: take_key@postgres :none
-- One at a time asks under a key; the others wait for its end.
SELECT pg_advisory_xact_lock(1347373390, hashtext(:principal || ' ' || :key));

-- name: find_request :one?
-- What was answered under an idempotency key.
SELECT digest, task, version, known
FROM requests
WHERE principal = :principal AND key = :key;

-- name: add_request :none
INSERT INTO requests (principal, key, digest, task, version, at) VALUES (:principal, :key, :digest, :task, :version, :at);

-- name: add_requests@sqlite :none
-- The same for many, a JSON array of objects.
INSERT INTO requests (principal, key, digest, task, version, at)
SELECT value ->> 'principal', value ->> 'key', value ->> 'digest', value ->> 'task', value ->> 'version', value ->> 'at'
FROM json_each(:rows);

-- name: add_requests@postgres :none
INSERT INTO requests (principal, key, digest, task, version, at)
SELECT principal, key, digest, task, version, at
FROM json_populate_recordset(CAST(NULL AS requests), CAST(:rows AS json));

-- name: bind_request :none
-- The same for an answer that was there already, which no entry keeps.
INSERT INTO requests (principal, key, digest, task, version, at, known, hash)
VALUES (:principal, :key, :digest, :task, :version, :at, :known, :hash);

-- name: bound_requests :many
-- Those of a window of keys whose answer was there already.
SELECT principal, key, digest, task, version, at, known, hash
FROM requests
WHERE (principal, key) > (:after_principal, :after_key) AND (principal, key) <= (:upto_principal, :upto_key) AND known IS NOT NULL
ORDER BY principal, key;

-- name: request_keys_after :many
-- The next idempotency records: a window of the table.
SELECT principal, key
FROM requests
WHERE (principal, key) > (:after_principal, :after_key)
ORDER BY principal, key
LIMIT :limit;

-- name: unmatched_requests :many
-- Requests of a window of keys that do not stand in history as they say.
SELECT r.principal, r.key, r.task
FROM requests AS r
LEFT JOIN tasks AS t ON t.id = r.task
LEFT JOIN entries AS e ON e.task = t.key AND e.version = r.version
WHERE (r.principal, r.key) > (:after_principal, :after_key) AND (r.principal, r.key) <= (:upto_principal, :upto_key)
    AND r.known IS NULL
    AND (r.hash IS NOT NULL OR e.key IS NULL OR e.by <> r.principal OR e.request_key <> r.key OR e.request_digest <> r.digest OR e.at <> r.at)
ORDER BY r.principal, r.key;

-- name: entries_without_request :many
-- Entries of a window of keys whose idempotency record is gone, though it is not old enough to have been pruned: their key would be taken for a
-- new one. What is remembered has none.
SELECT t.id, e.version
FROM entries AS e
JOIN tasks AS t ON t.key = e.task
LEFT JOIN requests AS r ON r.principal = e.by AND r.key = e.request_key
WHERE e.key > :after AND e.key <= :upto AND r.key IS NULL AND e.kind <> 'remember' AND e.at >= :kept_from
ORDER BY t.id, e.version;
