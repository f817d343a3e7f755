-- name: find_operation :one?
-- What a task has under a name. Its task is locked by whoever decides.
SELECT o.id, t.id AS task, o.name, o.kind, o.effect, o.request, o.request_digest, o.settle, o.compensates, o.status, o.epoch, o.attempt,
    o.begun_by, o.begun_at, o.deadline, o.settled_by, o.settled_at, o.result, o.note, o.version, o.hash
FROM operations AS o
JOIN tasks AS t ON t.key = o.task
WHERE o.task = (SELECT key FROM tasks WHERE id = :task) AND o.name = :name;

-- name: operations_alike :many
-- What a task has of a declared effect, or that undoes one operation. Its task is locked by whoever decides.
SELECT o.id, t.id AS task, o.name, o.kind, o.effect, o.request, o.request_digest, o.settle, o.compensates, o.status, o.epoch, o.attempt,
    o.begun_by, o.begun_at, o.deadline, o.settled_by, o.settled_at, o.result, o.note, o.version, o.hash
FROM operations AS o
JOIN tasks AS t ON t.key = o.task
WHERE o.task = :task AND (o.effect = :effect OR o.compensates = :compensates)
ORDER BY o.id;

-- name: operation :one?
SELECT o.id, t.id AS task, o.name, o.kind, o.effect, o.request, o.request_digest, o.settle, o.compensates, o.status, o.epoch, o.attempt,
    o.begun_by, o.begun_at, o.deadline, o.settled_by, o.settled_at, o.result, o.note, o.version, o.hash
FROM operations AS o
JOIN tasks AS t ON t.key = o.task
WHERE o.id = :id;

-- name: operations_of :many
-- A page of a task's operations.
SELECT o.id, t.id AS task, o.name, o.kind, o.effect, o.request, o.request_digest, o.settle, o.compensates, o.status, o.epoch, o.attempt,
    o.begun_by, o.begun_at, o.deadline, o.settled_by, o.settled_at, o.result, o.note, o.version, o.hash
FROM operations AS o
JOIN tasks AS t ON t.key = o.task
WHERE o.task = (SELECT key FROM tasks WHERE id = :task) AND o.id > :after
ORDER BY o.id
LIMIT :limit;

-- name: add_operation :none
INSERT INTO operations (
    id, task, name, kind, effect, request, request_digest, settle, compensates, status, epoch, attempt, begun_by, begun_at, deadline,
    settled_by, settled_at, result, note, version, hash
) VALUES (
    :id, :task, :name, :kind, :effect, :request, :request_digest, :settle, :compensates, :status, :epoch, :attempt, :begun_by, :begun_at,
    :deadline, :settled_by, :settled_at, :result, :note, :version, :hash
);

-- name: advance_operation :sure
-- Its next step, while it still is what was read.
UPDATE operations
SET status = :status, epoch = :epoch, attempt = :attempt, begun_by = :begun_by, begun_at = :begun_at, deadline = :deadline,
    settled_by = :settled_by, settled_at = :settled_at, result = :result, note = :note, version = :version, hash = :hash
WHERE id = :id AND version = :expected_version
RETURNING version;

-- name: add_testimony :none
INSERT INTO testimonies (operation, by, epoch, at, status, result, note, hash)
VALUES (:operation, :by, :epoch, :at, :status, :result, :note, :hash);

-- name: testimonies_of :many
-- What was said of a page of a task's operations.
SELECT s.operation, s.by, s.epoch, s.at, s.status, s.result, s.note
FROM operations AS o
JOIN tasks AS t ON t.key = o.task
JOIN testimonies AS s ON s.operation = o.id
WHERE t.id = :task AND o.id >= :first AND o.id <= :last
ORDER BY s.key;

-- name: testimonies_after :many
-- Every testimony, for verification.
SELECT key, operation, by, epoch, at, status, result, note, hash
FROM testimonies
WHERE key > :after
ORDER BY key
LIMIT :limit;

-- name: operations_after :many
-- Every operation, for verification.
SELECT o.id, t.id AS task, o.name, o.kind, o.effect, o.request, o.request_digest, o.settle, o.compensates, o.status, o.epoch, o.attempt,
    o.begun_by, o.begun_at, o.deadline, o.settled_by, o.settled_at, o.result, o.note, o.version, o.hash
FROM operations AS o
JOIN tasks AS t ON t.key = o.task
WHERE o.id > :after
ORDER BY o.id
LIMIT :limit;

-- name: find_checkpoint :one?
SELECT number, version, epoch, at, by, data, plan, progress, hash
FROM checkpoints
WHERE task = :task;

-- name: put_checkpoint :one?
-- The next checkpoint of a task, while the last one still is what was read; the first where there was none.
INSERT INTO checkpoints (task, number, version, epoch, at, by, data, plan, progress, hash)
VALUES (:task, :number, :version, :epoch, :at, :by, :data, :plan, :progress, :hash)
ON CONFLICT (task) DO UPDATE SET
    number = excluded.number, version = excluded.version, epoch = excluded.epoch, at = excluded.at, by = excluded.by,
    data = excluded.data, plan = excluded.plan, progress = excluded.progress, hash = excluded.hash
WHERE checkpoints.number = excluded.number - 1
RETURNING number;

-- name: checkpoints_after :many
-- Every checkpoint, for verification.
SELECT c.task, t.id, c.number, c.version, c.epoch, c.at, c.by, c.data, c.plan, c.progress, c.hash
FROM checkpoints AS c
LEFT JOIN tasks AS t ON t.key = c.task
WHERE c.task > :after
ORDER BY c.task
LIMIT :limit;
