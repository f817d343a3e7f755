-- What a copy writes about itself into its target. It stands while the copy is not whole.

-- name: mark_unfinished :none
INSERT INTO unfinished (one, copy, source, begun_at) VALUES (1, :copy, :source, :begun_at);

-- name: lift_unfinished :one?
-- The copy is whole, unless another copy has begun meanwhile.
DELETE FROM unfinished
WHERE copy = :copy
RETURNING copy;

-- name: still_unfinished :one?
-- Whether this copy is still the one being written. Another that would begin waits for the end of this page.
SELECT copy
FROM unfinished
WHERE copy = :copy
/*lock*/;

-- name: wait_for_number@sqlite :none
-- What lies behind the last numbered entry waits by itself.
SELECT :entry;

-- name: wait_for_number@postgres :none
INSERT INTO unnumbered (entry) VALUES (:entry);
