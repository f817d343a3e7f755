-- name: add_hook :none
INSERT INTO hooks (id, kind, url, topics, machine, link, private, secrets, made_by, made_at, disabled_at, removed_by, removed_at, hash)
VALUES (
    :id, :kind, :url, :topics, :machine, :link, :private, :secrets, :made_by, :made_at, :disabled_at, :removed_by, :removed_at, :hash
);

-- name: find_hook :one?
-- A hook by id, locked.
SELECT id, kind, url, topics, machine, link, private, secrets, made_by, made_at, disabled_at, removed_by, removed_at, hash
FROM hooks
WHERE id = :id
/*lock*/;

-- name: hooks_in_use :many
-- The hooks that nobody removed, oldest first.
SELECT id, kind, url, topics, machine, link, private, secrets, made_by, made_at, disabled_at, removed_by, removed_at, hash
FROM hooks
WHERE removed_at IS NULL
ORDER BY id;

-- name: change_hook :sure
-- Other secrets, disabled or not, removed (and no longer with its whole URL), while it still is what was read.
UPDATE hooks
SET url = :url, secrets = :secrets, disabled_at = :disabled_at, removed_by = :removed_by, removed_at = :removed_at, hash = :hash
WHERE id = :id AND hash = :expected
RETURNING id;

-- name: hooks_after :many
-- Every hook, for verification.
SELECT id, kind, url, topics, machine, link, private, secrets, made_by, made_at, disabled_at, removed_by, removed_at, hash
FROM hooks
WHERE id > :after
ORDER BY id
LIMIT :limit;
