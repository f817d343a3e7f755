-- name: add_proposal :none
INSERT INTO proposals (
    id, task, event, asked, principal, request_key, request_digest, created_at, status, version, refusal, settled_at, hash, claimed_until
) VALUES (
    :id, :task, :event, :asked, :principal, :request_key, :request_digest, :created_at, :status, :version, :refusal, :settled_at, :hash,
    :claimed_until
);

-- name: find_proposal :one?
SELECT id, task, event, asked, principal, request_key, request_digest, created_at, status, version, refusal, settled_at, hash
FROM proposals
WHERE id = :id;

-- name: requested_proposal :one?
-- The proposal made under a principal's idempotency key.
SELECT id, task, event, asked, principal, request_key, request_digest, created_at, status, version, refusal, settled_at, hash
FROM proposals
WHERE principal = :principal AND request_key = :request_key;

-- name: pending_of_task :one?
SELECT id, task, event, asked, principal, request_key, request_digest, created_at, status, version, refusal, settled_at, hash
FROM proposals
WHERE task = :task AND status = 'pending';

-- name: settle_proposal :one?
-- The outcome, while the proposal is still pending.
UPDATE proposals
SET status = :status, version = :version, refusal = :refusal, settled_at = :settled_at, hash = :hash
WHERE id = :id AND status = 'pending'
RETURNING id;

-- name: abandoned_proposals :many
-- Pending proposals that nobody works on.
SELECT id
FROM proposals
WHERE status = 'pending' AND claimed_until < :now
ORDER BY claimed_until
LIMIT :limit;

-- name: proposal_abandoned :one?
SELECT id
FROM proposals
WHERE id = :id AND status = 'pending' AND claimed_until < :now;

-- name: take_proposal :one?
-- Work on a pending proposal, while nobody else does.
UPDATE proposals
SET claimed_until = :claimed_until
WHERE id = :id AND status = 'pending' AND claimed_until < :now
RETURNING id;

-- name: keep_proposal :one?
-- Still working on it.
UPDATE proposals
SET claimed_until = :claimed_until
WHERE id = :id AND status = 'pending'
RETURNING id;

-- name: proposals_after :many
-- Every proposal, for verification.
SELECT id, task, event, asked, principal, request_key, request_digest, created_at, status, version, refusal, settled_at, hash
FROM proposals
WHERE :after IS NULL OR id > :after
ORDER BY id
LIMIT :limit;

-- name: count_pending :one
-- How many proposals wait for their checks.
SELECT count(*) AS pending
FROM proposals
WHERE status = 'pending';
