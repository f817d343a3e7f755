-- name: add_pruning :none
-- What may be missing from now on: written before anything is removed.
INSERT INTO prunings (number, before, payloads, at, hash) VALUES (:number, :before, :payloads, :at, :hash);

-- name: list_prunings :many
SELECT number, before, payloads, at, hash
FROM prunings
ORDER BY number;

-- name: lock_prunings@sqlite :none
-- Whoever writes is alone.
SELECT 0;

-- name: lock_prunings@postgres :none
-- One at a time gives numbers.
SELECT pg_advisory_xact_lock(1347373391, 4);

-- name: count_prunable :one
-- What a pruning would remove: idempotency records, refusals, settled proposals, judgements of final tasks, and final tasks
-- whose payloads are still there.
SELECT
    (SELECT count(*) FROM requests WHERE at < :before) AS requests,
    (SELECT count(*) FROM refusals WHERE at < :before) AS refusals,
    (SELECT count(*) FROM proposals WHERE status <> 'pending' AND settled_at < :before) AS proposals,
    (
        SELECT count(*) FROM judgements AS j JOIN tasks AS t ON t.id = j.task WHERE t.final = 1 AND t.updated_at < :before
    ) AS judgements,
    (
        SELECT count(*)
        FROM tasks AS t
        WHERE t.final = 1 AND t.begun = '[]' AND t.updated_at < :before AND NOT EXISTS (SELECT 1 FROM pruned AS p WHERE p.task = t.key)
    ) AS tasks;

-- name: prune_requests :many
-- The old ones of a window.
DELETE FROM requests
WHERE (principal, key) > (:after_principal, :after_key) AND (principal, key) <= (:upto_principal, :upto_key) AND at < :before
RETURNING at;

-- name: proposal_ids_after :many
SELECT id
FROM proposals
WHERE id > :after
ORDER BY id
LIMIT :limit;

-- name: prune_proposals :many
-- The settled ones of a window.
DELETE FROM proposals
WHERE id > :after AND id <= :upto AND status <> 'pending' AND settled_at < :before
RETURNING id;

-- name: judgement_keys_after :many
SELECT task, check_name, inputs_digest
FROM judgements
WHERE (task, check_name, inputs_digest) > (:after_task, :after_check, :after_digest)
ORDER BY task, check_name, inputs_digest
LIMIT :limit;

-- name: prune_judgements :many
-- Those of a window whose task has been final for so long: while a task is open, forgetting one would run its check again.
DELETE FROM judgements
WHERE (task, check_name, inputs_digest) > (:after_task, :after_check, :after_digest)
    AND (task, check_name, inputs_digest) <= (:upto_task, :upto_check, :upto_digest)
    AND EXISTS (SELECT 1 FROM tasks AS t WHERE t.id = judgements.task AND t.final = 1 AND t.updated_at < :before)
RETURNING at;

-- name: prune_refusals :many
-- All old ones at once, since the log is short.
DELETE FROM refusals
WHERE at < :before
RETURNING key;

-- name: last_task_key :one
SELECT coalesce(max(key), 0) AS key
FROM tasks;

-- name: tasks_to_prune :many
-- Those of a window of keys that have been final for so long, have no operation in doubt, and still have their payloads.
SELECT t.id
FROM tasks AS t
WHERE t.key > :after AND t.key <= :upto AND t.final = 1 AND t.begun = '[]' AND t.updated_at < :before
    AND NOT EXISTS (SELECT 1 FROM pruned AS p WHERE p.task = t.key)
ORDER BY t.key;

-- name: add_pruned :one?
-- A task without payloads: its hash vouches for the live row. The first one stands.
INSERT INTO pruned (task, version, at, hash) VALUES (:task, :version, :at, :hash)
ON CONFLICT (task) DO NOTHING
RETURNING task;

-- name: find_pruned :one?
SELECT version, at, hash
FROM pruned
WHERE task = :task;

-- name: drop_payloads :none
DELETE FROM payloads
WHERE entry IN (SELECT key FROM entries WHERE task = :task);

-- name: drop_snapshots :none
DELETE FROM snapshots
WHERE task = :task;
