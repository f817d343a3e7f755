-- name: add_entry@sqlite :none
INSERT INTO entries (
    task, version, at, kind, event, from_state, to_state, by, session, door, auth, epoch, payload_digest, request_key,
    request_digest, format, previous, hash
) VALUES (
    :task, :version, :at, :kind, :event, :from_state, :to_state, :by, :session, :door, :auth, :epoch, :payload_digest, :request_key,
    :request_digest, :format, :previous, :hash
);

-- name: add_entry@postgres :none
-- Its feed number comes later, and not in the order of keys.
WITH added AS (
    INSERT INTO entries (
        task, version, at, kind, event, from_state, to_state, by, session, door, auth, epoch, payload_digest, request_key,
        request_digest, format, previous, hash
    ) VALUES (
        :task, :version, :at, :kind, :event, :from_state, :to_state, :by, :session, :door, :auth, :epoch, :payload_digest, :request_key,
        :request_digest, :format, :previous, :hash
    )
    RETURNING key
)
INSERT INTO unnumbered (entry) SELECT key FROM added;

-- name: add_entries@sqlite :many
-- The same for many entries, a JSON array of objects, each of another task.
INSERT INTO entries (
    task, version, at, kind, event, from_state, to_state, by, session, door, auth, epoch, payload_digest, request_key,
    request_digest, format, previous, hash
)
SELECT
    value ->> 'task', value ->> 'version', value ->> 'at', value ->> 'kind', value ->> 'event', value ->> 'from_state',
    value ->> 'to_state', value ->> 'by', value ->> 'session', value ->> 'door', value ->> 'auth', value ->> 'epoch',
    value ->> 'payload_digest', value ->> 'request_key', value ->> 'request_digest', value ->> 'format', value ->> 'previous',
    value ->> 'hash'
FROM json_each(:rows)
RETURNING key, task;

-- name: add_entries@postgres :many
WITH added AS (
    INSERT INTO entries (
        task, version, at, kind, event, from_state, to_state, by, session, door, auth, epoch, payload_digest, request_key,
        request_digest, format, previous, hash
    )
    SELECT
        task, version, at, kind, event, from_state, to_state, by, session, door, auth, epoch, payload_digest, request_key,
        request_digest, format, previous, hash
    FROM json_populate_recordset(CAST(NULL AS entries), CAST(:rows AS json))
    RETURNING key, task
), waiting AS (
    INSERT INTO unnumbered (entry) SELECT key FROM added
)
SELECT key, task FROM added;

-- name: add_payload :none
INSERT INTO payloads (entry, nonce, body)
SELECT key, :nonce, :body
FROM entries
WHERE task = :task AND version = :version;

-- name: add_payloads@sqlite :none
INSERT INTO payloads (entry, nonce, body)
SELECT value ->> 'entry', value ->> 'nonce', value ->> 'body'
FROM json_each(:rows);

-- name: add_payloads@postgres :none
INSERT INTO payloads (entry, nonce, body)
SELECT entry, nonce, body
FROM json_populate_recordset(CAST(NULL AS payloads), CAST(:rows AS json));

-- name: entries_of :many
-- A task's history with payloads, oldest first, between two versions.
SELECT
    e.key, t.id, e.version, e.at, e.kind, e.event, e.from_state, e.to_state, e.by, e.session, e.door, e.auth, e.epoch, e.payload_digest,
    e.request_key, e.request_digest, e.format, e.previous, e.hash, p.nonce, p.body, f.seq
FROM entries AS e
JOIN tasks AS t ON t.key = e.task
LEFT JOIN payloads AS p ON p.entry = e.key
LEFT JOIN feed AS f ON f.entry = e.key
WHERE t.id = :task AND e.version > :after AND e.version <= :upto
ORDER BY e.version
LIMIT :limit;

-- name: latest_entries_of :many
-- The last entries of one task, newest first.
SELECT
    e.key, t.id, e.version, e.at, e.kind, e.event, e.from_state, e.to_state, e.by, e.session, e.door, e.auth, e.epoch, e.payload_digest,
    e.request_key, e.request_digest, e.format, e.previous, e.hash, p.nonce, p.body, f.seq
FROM entries AS e
JOIN tasks AS t ON t.key = e.task
LEFT JOIN payloads AS p ON p.entry = e.key
LEFT JOIN feed AS f ON f.entry = e.key
WHERE t.id = :task
ORDER BY e.version DESC
LIMIT :limit;

-- name: feed_before :many
-- Numbered entries of the whole board, newest first.
SELECT
    e.key, t.id, e.version, e.at, e.kind, e.event, e.from_state, e.to_state, e.by, e.session, e.door, e.auth, e.epoch, e.payload_digest,
    e.request_key, e.request_digest, e.format, e.previous, e.hash, p.nonce, p.body, f.seq
FROM feed AS f
JOIN entries AS e ON e.key = f.entry
JOIN tasks AS t ON t.key = e.task
LEFT JOIN payloads AS p ON p.entry = e.key
WHERE f.seq < :before
    AND (e.by = :actor OR :actor IS NULL)
    AND (e.event = :event OR :event IS NULL)
    AND (e.at >= :start OR :start IS NULL)
    AND (e.at < :end OR :end IS NULL)
ORDER BY f.seq DESC
LIMIT :limit;

-- name: feed_after :many
-- Numbered entries of the whole board in feed order.
SELECT
    e.key, t.id, e.version, e.at, e.kind, e.event, e.from_state, e.to_state, e.by, e.session, e.door, e.auth, e.epoch, e.payload_digest,
    e.request_key, e.request_digest, e.format, e.previous, e.hash, p.nonce, p.body, f.seq
FROM feed AS f
JOIN entries AS e ON e.key = f.entry
JOIN tasks AS t ON t.key = e.task
LEFT JOIN payloads AS p ON p.entry = e.key
WHERE f.seq > :after
ORDER BY f.seq
LIMIT :limit;

-- name: entry_keys :one
-- The lowest and the highest key of any entry or payload, for a walk over windows of keys.
SELECT
    coalesce(min(found.low), 0) AS low,
    coalesce(max(found.high), 0) AS high
FROM (
    SELECT (SELECT min(e.key) FROM entries AS e) AS low, (SELECT max(e.key) FROM entries AS e) AS high
    UNION ALL
    SELECT (SELECT min(p.entry) FROM payloads AS p) AS low, (SELECT max(p.entry) FROM payloads AS p) AS high
) AS found;

-- name: stray_entries :many
-- Entries of a window of keys that belong to no task, and payloads that belong to no entry.
SELECT 'entry' AS what, e.key AS key
FROM entries AS e
LEFT JOIN tasks AS t ON t.key = e.task
WHERE e.key > :after AND e.key <= :upto AND t.key IS NULL
UNION ALL
SELECT 'payload' AS what, p.entry AS key
FROM payloads AS p
LEFT JOIN entries AS e ON e.key = p.entry
WHERE p.entry > :after AND p.entry <= :upto AND e.key IS NULL
ORDER BY what, key;

-- name: last_entry :one
SELECT coalesce(max(key), 0) AS key
FROM entries;

-- name: changes_after :many
-- Which tasks moved, and whether one may have left something to be taken.
SELECT e.key, t.id, t.machine, CASE WHEN t.final = 1 OR t.owner IS NULL THEN 1 ELSE 0 END AS opens
FROM entries AS e
JOIN tasks AS t ON t.key = e.task
WHERE e.key > :after
ORDER BY e.key
LIMIT :limit;
