-- name: lock_limit@sqlite :none
-- Whoever writes is alone.
SELECT :name, :subject;

-- name: lock_limit@postgres :none
-- One at a time decides on what a limit has left; the others wait for its end.
SELECT pg_advisory_xact_lock(1347373392, hashtext(:name || ' ' || :subject)) /*wait*/;

-- name: uses_of_limit :one
-- How much others use of a limit since a time, and when the first of it began.
SELECT CAST(coalesce(sum(amount), 0) AS bigint) AS amount, min(at) AS first_at
FROM limit_uses
WHERE name = :name AND subject = :subject AND at > :since AND (task <> :but OR :but IS NULL);

-- name: add_use :none
INSERT INTO limit_uses (task, version, name, subject, amount, at, ends)
VALUES (:task, :version, :name, :subject, :amount, :at, :ends);

-- name: free_places :none
-- What a task used for as long as it had its owner.
DELETE FROM limit_uses
WHERE task = :task AND ends IS NULL;

-- name: some_use_ended :one
SELECT EXISTS (
    SELECT 1 FROM limit_uses WHERE ends <= :before
) AS ended;

-- name: uses_ended :many
-- Forget uses that no window holds any more.
DELETE FROM limit_uses
WHERE (task, version, name) IN (
    SELECT u.task, u.version, u.name FROM limit_uses AS u
    WHERE u.ends <= :before
    ORDER BY u.ends
    LIMIT :limit
    /*lock:skip*/
)
RETURNING task;

-- name: uses_after :many
-- Every use, for verification.
SELECT task, version, name, subject, amount, at, ends
FROM limit_uses
WHERE (task, version, name) > (:after_task, :after_version, :after_name)
ORDER BY task, version, name
LIMIT :limit;
