-- name: add_hold :none
INSERT INTO holds (
    id, machine, event, state, tag, reason, begins, until, release_per_s, placed_by, placed_at, lifted_by, lifted_at, hash, next_at, read_until
) VALUES (
    :id, :machine, :event, :state, :tag, :reason, :begins, :until, :release_per_s, :placed_by, :placed_at, :lifted_by, :lifted_at, :hash,
    :next_at, :read_until
);

-- name: find_hold :one?
-- A hold by id, locked.
SELECT id, machine, event, state, tag, reason, begins, until, release_per_s, placed_by, placed_at, lifted_by, lifted_at, next_at, hash, read_until
FROM holds
WHERE id = :id
/*lock*/;

-- name: holds_in_use :many
-- The holds that may bear on a decision: in force, to come, or ended while something of their backlog is left. Usually none.
SELECT id, machine, event, state, tag, reason, begins, until, release_per_s, placed_by, placed_at, lifted_by, lifted_at, next_at, hash, read_until
FROM holds
WHERE read_until = :always
ORDER BY id;

-- name: lift_hold :one?
-- End a hold, unless somebody has.
UPDATE holds
SET lifted_by = :lifted_by, lifted_at = :lifted_at, hash = :hash
WHERE id = :id AND lifted_at IS NULL
RETURNING id;

-- name: pace_hold :one?
-- One acquisition from the backlog of an ended hold: when the next may come, if this one still was to come now.
UPDATE holds
SET next_at = :next_at
WHERE id = :id AND next_at = :expected
RETURNING id;

-- name: retire_hold :one?
-- An ended hold of whose backlog nothing is left is not read any more.
UPDATE holds
SET read_until = :ends
WHERE id = :id AND read_until = :always
RETURNING id;

-- name: holds_after :many
-- Every hold, oldest first.
SELECT id, machine, event, state, tag, reason, begins, until, release_per_s, placed_by, placed_at, lifted_by, lifted_at, next_at, hash, read_until
FROM holds
WHERE id > :after
ORDER BY id
LIMIT :limit;
