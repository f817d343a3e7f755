-- name: open_lanes :none
-- A lane for each hook that listens; of a lane that is there already, whoever would just close it is waited for. A disabled hook's
-- is parked from the beginning.
INSERT INTO message_lanes (hook, task, next_at, tries, claim, parked_at, error)
SELECT h.id, :task, :at, 0, 0, h.disabled_at, ''
FROM hooks AS h
WHERE h.removed_at IS NULL AND (h.machine IS NULL OR h.machine = :machine) AND replace(h.topics, :quoted, '') <> h.topics
ON CONFLICT (hook, task) DO UPDATE SET claim = message_lanes.claim /*wait*/;

-- name: add_messages :none
-- One message for each hook that listens.
INSERT INTO messages (hook, id, topic, task, version, body, at, hash)
SELECT h.id, :id, :topic, :task, :version, :body, :at, :hash
FROM hooks AS h
WHERE h.removed_at IS NULL AND (h.machine IS NULL OR h.machine = :machine) AND replace(h.topics, :quoted, '') <> h.topics;

-- name: message_lanes_due :many
-- The lanes of a hook that may be worked on, the longest due first.
SELECT task, tries, claim
FROM message_lanes
WHERE hook = :hook AND parked_at IS NULL AND next_at <= :now
ORDER BY next_at, task
LIMIT :limit
/*lock:skip*/;

-- name: claim_message_lane :one?
-- Whoever had it before is not its holder any more.
UPDATE message_lanes
SET claim = claim + 1, next_at = :until
WHERE hook = :hook AND task = :task AND claim = :claim
RETURNING claim;

-- name: lock_message_lane :one?
-- A lane, for as long as its holder is who it was.
SELECT tries, parked_at
FROM message_lanes
WHERE hook = :hook AND task = :task AND claim = :claim
/*lock*/;

-- name: first_message :one?
SELECT key, id, topic, task, version, body, at, hash
FROM messages
WHERE hook = :hook AND task = :task
ORDER BY key
LIMIT 1;

-- name: drop_message :none
DELETE FROM messages
WHERE key = :key;

-- name: close_message_lane :none
DELETE FROM message_lanes
WHERE hook = :hook AND task = :task;

-- name: move_message_lane :none
UPDATE message_lanes
SET next_at = :next_at, tries = :tries, parked_at = :parked_at, error = :error
WHERE hook = :hook AND task = :task;

-- name: park_message_lanes :none
-- All lanes of a hook that takes nothing any more.
UPDATE message_lanes
SET parked_at = :at, error = :error
WHERE hook = :hook AND parked_at IS NULL;

-- name: redrive_message_lanes :many
-- The parked lanes of a hook begin anew; whoever held one does not hold it any more.
UPDATE message_lanes
SET parked_at = NULL, tries = 0, next_at = :at, claim = claim + 1, error = ''
WHERE hook = :hook AND parked_at IS NOT NULL
RETURNING task;

-- name: drop_messages_of_hook :none
DELETE FROM messages
WHERE hook = :hook;

-- name: drop_message_lanes_of_hook :none
DELETE FROM message_lanes
WHERE hook = :hook;

-- name: parked_message_lanes :many
-- Lanes of a hook whose first message could not be delivered, with how many messages wait in each.
SELECT l.task, l.tries, l.parked_at, l.error, (SELECT count(*) FROM messages AS m WHERE m.hook = l.hook AND m.task = l.task) AS waiting
FROM message_lanes AS l
WHERE l.hook = :hook AND l.parked_at IS NOT NULL AND l.task > :after
ORDER BY l.task
LIMIT :limit;

-- name: messages_waiting :many
-- How many messages wait for each hook, and since when the oldest does.
SELECT hook, count(*) AS waiting, min(at) AS oldest
FROM messages
GROUP BY hook
ORDER BY hook;

-- name: messages_after :many
-- Every message, for verification.
SELECT key, id, topic, task, version, body, at, hash
FROM messages
WHERE key > :after
ORDER BY key
LIMIT :limit;

-- name: unpaired_message_lanes :many
-- A message without its lane would never be sent; a lane without a message, or without its hook, goes nowhere.
SELECT 'a message' AS what, m.hook, m.task
FROM messages AS m
WHERE NOT EXISTS (SELECT 1 FROM message_lanes AS l WHERE l.hook = m.hook AND l.task = m.task)
UNION
SELECT 'a lane' AS what, l.hook, l.task
FROM message_lanes AS l
WHERE NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.hook = l.hook AND m.task = l.task)
    OR NOT EXISTS (SELECT 1 FROM hooks AS h WHERE h.id = l.hook AND h.removed_at IS NULL)
ORDER BY what, hook, task;
