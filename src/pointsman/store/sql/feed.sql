-- name: feed_head :one?
-- The last numbered entry.
SELECT seq, entry, at, hash
FROM feed
ORDER BY seq DESC
LIMIT 1;

-- name: lock_feed@sqlite :none
-- Whoever writes is alone.
SELECT 0;

-- name: lock_feed@postgres :none
-- One at a time gives numbers.
SELECT pg_advisory_xact_lock(1347373391, 2);

-- name: wait_for_writers@sqlite :none
-- Whoever writes is alone.
SELECT 0;

-- name: wait_for_writers@postgres :none
-- Whoever has read the clock and is not committed yet: each holds this lock together with the others.
SELECT pg_advisory_xact_lock(1347373391, 3) /*wait*/;

-- name: feed_waits@sqlite :one
-- Whether committed entries have no feed number yet.
SELECT EXISTS (
    SELECT 1 FROM entries WHERE key > coalesce((SELECT entry FROM feed ORDER BY seq DESC LIMIT 1), 0)
) AS waits;

-- name: feed_waits@postgres :one
SELECT EXISTS (SELECT 1 FROM unnumbered) AS waits;

-- name: unnumbered@sqlite :many
-- Committed entries that have no feed number yet, in the order of their commit.
SELECT e.key, e.task, e.version, e.at, e.hash
FROM entries AS e
WHERE e.key > coalesce((SELECT entry FROM feed ORDER BY seq DESC LIMIT 1), 0)
ORDER BY e.key
LIMIT :limit;

-- name: unnumbered@postgres :many
-- An entry may be committed after others with higher keys; those of one task are committed in order.
SELECT e.key, e.task, e.version, e.at, e.hash
FROM unnumbered AS u
JOIN entries AS e ON e.key = u.entry
ORDER BY u.entry
LIMIT :limit;

-- name: add_feed@sqlite :none
INSERT INTO feed (seq, task, version, entry, at, hash) VALUES (:seq, :task, :version, :entry, :at, :hash);

-- name: add_feed@postgres :none
WITH numbered AS (DELETE FROM unnumbered WHERE entry = :entry)
INSERT INTO feed (seq, task, version, entry, at, hash) VALUES (:seq, :task, :version, :entry, :at, :hash);

-- name: feed_at :one?
-- The last feed number at or before a time.
SELECT seq
FROM feed
WHERE at <= :at
ORDER BY at DESC, seq DESC
LIMIT 1;

-- name: feed_row :one?
SELECT seq, entry, at, hash
FROM feed
WHERE seq = :seq;

-- name: feed_rows :many
-- Feed rows with the entries they number, for verification.
SELECT f.seq, f.task, f.version, f.entry, f.at, f.hash, e.task, e.version, e.at, e.hash
FROM feed AS f
LEFT JOIN entries AS e ON e.key = f.entry
WHERE f.seq > :after
ORDER BY f.seq
LIMIT :limit;

-- name: unnumbered_behind@sqlite :many
-- Entries of a window of keys that stand before the last numbered one and have no number: they were put there afterwards.
SELECT e.key
FROM entries AS e
LEFT JOIN feed AS f ON f.entry = e.key
WHERE e.key > :after AND e.key <= :upto AND e.key <= :entry AND f.seq IS NULL
ORDER BY e.key;

-- name: unnumbered_behind@postgres :many
-- Here an entry may well be committed after the last numbered one, whatever their keys: then it waits for its number.
SELECT e.key
FROM entries AS e
LEFT JOIN feed AS f ON f.entry = e.key
LEFT JOIN unnumbered AS u ON u.entry = e.key
WHERE e.key > :after AND e.key <= :upto AND f.seq IS NULL AND u.entry IS NULL AND :entry >= 0
ORDER BY e.key;

-- name: version_at :one?
-- A task's version as of a feed number.
SELECT f.version
FROM feed AS f
JOIN tasks AS t ON t.key = f.task
WHERE t.id = :task AND f.seq <= :seq
ORDER BY f.seq DESC
LIMIT 1;

-- name: board_at :many
-- Tasks that existed as of a feed number, in order of creation, with their version then. None of them was created after
-- the time of that number, which ends the search.
SELECT t.id, t.created_at, (SELECT f.version FROM feed AS f WHERE f.task = t.key AND f.seq <= :seq ORDER BY f.seq DESC LIMIT 1) AS version
FROM tasks AS t
WHERE (t.created_at, t.id) > (:after, :after_id)
    AND t.created_at <= (SELECT h.at FROM feed AS h WHERE h.seq = :seq)
    AND EXISTS (SELECT 1 FROM feed AS f WHERE f.task = t.key AND f.seq <= :seq)
ORDER BY t.created_at, t.id
LIMIT :limit;
