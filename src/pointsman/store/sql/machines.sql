-- name: find_machine :one?
SELECT name, version, digest, form, functions, published_at, hash
FROM machines
WHERE name = :name AND version = :version;

-- name: newest_machine :one?
-- The highest published version of a name: it takes new tasks.
SELECT version, digest
FROM machines
WHERE name = :name
ORDER BY version DESC
LIMIT 1;

-- name: list_machines :many
SELECT name, version, digest, form, functions, published_at, hash
FROM machines
ORDER BY name, version;

-- name: add_machine :none
INSERT INTO machines (name, version, digest, form, functions, published_at, hash)
VALUES (:name, :version, :digest, :form, :functions, :published_at, :hash);

-- name: replace_machine :one?
-- Another structure under the same number, allowed only while no task of it is open.
UPDATE machines
SET digest = :digest, form = :form, functions = :functions, published_at = :published_at, hash = :hash
WHERE name = :name AND version = :version AND digest = :expected_digest
RETURNING version;
