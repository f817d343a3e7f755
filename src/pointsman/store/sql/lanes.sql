-- name: find_lane :one?
SELECT key
FROM lanes
WHERE digest = :digest;

-- name: add_lane :none
-- Somebody may add the same lane at the same moment.
INSERT INTO lanes (digest, text) VALUES (:digest, :text)
ON CONFLICT DO NOTHING;

-- name: lanes_after :many
-- Every lane, for verification.
SELECT key, digest, text
FROM lanes
WHERE key > :after
ORDER BY key
LIMIT :limit;

-- name: first_in_line :many
-- The beginning of a line: the first tasks that can be claimed over all states and lanes, each with its lane.
SELECT t.state, t.lane, (SELECT l.text FROM lanes AS l WHERE l.key = t.lane) AS text, t.place, t.key
FROM tasks AS t
WHERE t.ready = 1 AND t.machine = :machine AND t.machine_version = :machine_version
ORDER BY t.place, t.key
LIMIT :limit;

-- name: lanes_with_work :many
-- The first task of each state and lane in which one can be claimed. Looks up the next one instead of reading all rows. Every state
-- is beyond `before`: asked for so, SQLite takes the index also where it has counted that one machine has all rows.
WITH RECURSIVE found (key, state, lane, place) AS (
    SELECT t.key, t.state, t.lane, t.place
    FROM tasks AS t
    WHERE t.key = (
        SELECT n.key FROM tasks AS n
        WHERE n.ready > 0 AND n.machine = :machine AND n.machine_version = :machine_version AND n.state > :before
        ORDER BY n.state, n.lane, n.place, n.key
        LIMIT 1
    )
    UNION ALL
    SELECT t.key, t.state, t.lane, t.place
    FROM found
    JOIN tasks AS t ON t.key = coalesce(
        (
            SELECT n.key FROM tasks AS n
            WHERE n.ready > 0 AND n.machine = :machine AND n.machine_version = :machine_version
                AND n.state = found.state AND n.lane > found.lane
            ORDER BY n.lane, n.place, n.key
            LIMIT 1
        ),
        (
            SELECT n.key FROM tasks AS n
            WHERE n.ready > 0 AND n.machine = :machine AND n.machine_version = :machine_version AND n.state > found.state
            ORDER BY n.state, n.lane, n.place, n.key
            LIMIT 1
        )
    )
)
SELECT found.state, found.lane, (SELECT l.text FROM lanes AS l WHERE l.key = found.lane) AS text, found.place, found.key
FROM found
ORDER BY found.place, found.key;
