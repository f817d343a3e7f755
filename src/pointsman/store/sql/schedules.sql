-- name: find_schedule :one?
-- Where a schedule of a machine stands, locked.
SELECT machine, name, spec, next_at, hash
FROM schedules
WHERE machine = :machine AND name = :name
/*lock*/;

-- name: schedules_of :many
-- Every schedule of a machine.
SELECT machine, name, spec, next_at, hash
FROM schedules
WHERE machine = :machine
ORDER BY name;

-- name: add_schedule :one?
-- Begin a schedule, unless somebody has.
INSERT INTO schedules (machine, name, spec, next_at, hash)
VALUES (:machine, :name, :spec, :next_at, :hash)
ON CONFLICT (machine, name) DO NOTHING
RETURNING name;

-- name: move_schedule :one?
-- On to the next moment, or to another spelling of the schedule, if nobody has moved it.
UPDATE schedules
SET spec = :spec, next_at = :next_at, hash = :hash
WHERE machine = :machine AND name = :name AND next_at = :expected_next_at AND spec = :expected_spec
RETURNING name;

-- name: end_schedule :one?
-- A schedule that its machine no longer declares.
DELETE FROM schedules
WHERE machine = :machine AND name = :name AND spec = :expected_spec
RETURNING name;

-- name: made_on_schedule :one
-- Whether the task of a moment was made.
SELECT EXISTS (
    SELECT 1 FROM tasks WHERE machine = :machine AND dedupe_key = :dedupe_key
) AS made;

-- name: schedules_after :many
-- Every schedule, for verification.
SELECT machine, name, spec, next_at, hash
FROM schedules
WHERE (machine, name) > (:after_machine, :after_name)
ORDER BY machine, name
LIMIT :limit;
