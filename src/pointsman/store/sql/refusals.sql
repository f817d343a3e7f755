-- name: add_refusal :one
INSERT INTO refusals (at, task, event, by, door, code, detail) VALUES (:at, :task, :event, :by, :door, :code, :detail)
RETURNING key;

-- name: trim_refusals :none
DELETE FROM refusals WHERE key <= :upto;

-- name: latest_refusals :many
SELECT at, task, event, by, door, code, detail
FROM refusals
ORDER BY key DESC
LIMIT :limit;
