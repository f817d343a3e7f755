-- name: find_judgement :one?
SELECT status, reason, detail
FROM judgements
WHERE task = :task AND check_name = :check AND inputs_digest = :inputs_digest;

-- name: add_judgement :one?
-- The first judgement of these inputs stands; a later one is not kept.
INSERT INTO judgements (task, check_name, inputs_digest, status, reason, detail, at, hash)
VALUES (:task, :check, :inputs_digest, :status, :reason, :detail, :at, :hash)
ON CONFLICT (task, check_name, inputs_digest) DO NOTHING
RETURNING status;

-- name: judgements_after :many
-- Every judgement, for verification.
SELECT task, check_name, inputs_digest, status, reason, detail, at, hash
FROM judgements
WHERE (task, check_name, inputs_digest) > (:after_task, :after_check, :after_digest)
ORDER BY task, check_name, inputs_digest
LIMIT :limit;
