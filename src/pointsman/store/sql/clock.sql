-- name: find_mark :one?
-- The last time that the store is known to have seen, and the uptime of the machine at which that was.
SELECT mark, uptime
FROM clock
WHERE one = 1;

-- name: keep_mark :one?
-- On to another time, if nobody has moved it since it was read; the first, if nobody has begun.
INSERT INTO clock (one, mark, uptime)
VALUES (1, :mark, :uptime)
ON CONFLICT (one) DO UPDATE SET mark = excluded.mark, uptime = excluded.uptime
WHERE clock.mark = :expected_mark AND clock.uptime = :expected_uptime
RETURNING mark;
