-- name: add_dependency :none
INSERT INTO dependencies (dependent, upstream, on_failure, settled) VALUES (:dependent, :upstream, :on_failure, :settled);

-- name: dependencies_of :many
-- What a task was made to wait for, and how that stands: also whether it was ever parked, and whether its end is still told.
SELECT d.upstream, d.on_failure, d.settled, u.machine, u.machine_version, u.state, u.parked,
    EXISTS (SELECT 1 FROM entries AS e WHERE e.task = u.key AND e.kind = 'park') AS was_parked,
    EXISTS (SELECT 1 FROM settling AS s WHERE s.task = d.upstream) AS told
FROM dependencies AS d
LEFT JOIN tasks AS u ON u.id = d.upstream
WHERE d.dependent = :dependent
ORDER BY d.upstream;

-- name: due_dependents :many
-- Tasks that the end of another concerns, in the order in which whoever locks several takes them.
SELECT key, id, machine, machine_version, state, version, revision, digest, fields, owner, owner_root, session, epoch, priority, evidence, contributors, decisions, created_by, created_at, updated_at, head, lease_until, since, deadline, run_at, tags, needs, dedupe_key, parent, blocked_by, attempts, parked, joining, begun, blockers, on_failure
FROM dependencies
JOIN tasks ON id = dependent
WHERE upstream = :upstream AND settled = 0 AND (on_failure <> 'block' OR :blocked_too = 1)
ORDER BY dependent
LIMIT :limit
/*lock*/;

-- name: settle_dependency :one?
UPDATE dependencies SET settled = 1
WHERE dependent = :dependent AND upstream = :upstream AND settled = 0
RETURNING dependent;

-- name: open_children :many
-- Children that are not over, in the order in which whoever locks several takes them.
SELECT key, id, machine, machine_version, state, version, revision, digest, fields, owner, owner_root, session, epoch, priority, evidence, contributors, decisions, created_by, created_at, updated_at, head, lease_until, since, deadline, run_at, tags, needs, dedupe_key, parent, blocked_by, attempts, parked, joining, begun, blockers
FROM tasks
WHERE parent = :parent AND final = 0
ORDER BY id
LIMIT :limit
/*lock*/;

-- name: children :many
-- How many children are in each state.
SELECT machine, machine_version, state, count(*) AS children
FROM tasks
WHERE parent = :parent
GROUP BY machine, machine_version, state
ORDER BY machine, machine_version, state;

-- name: find_deduped :one?
-- The task that a machine knows under a key.
SELECT id
FROM tasks
WHERE machine = :machine AND dedupe_key = :dedupe_key;

-- name: lock_joins@sqlite :none
-- Whoever writes is alone.
SELECT 0;

-- name: lock_joins@postgres :none
-- One at a time looks whether its join closes a circle.
SELECT pg_advisory_xact_lock(1347373391, 5);

-- name: is_awaited :one
-- Whether an open task waits for this one: by a dependency, or as its parent that joins it.
SELECT CASE WHEN EXISTS (
    SELECT 1 FROM dependencies AS d
    WHERE d.upstream = :task AND d.settled = 0 AND (SELECT t.final FROM tasks AS t WHERE t.id = d.dependent) = 0
) OR EXISTS (
    SELECT 1 FROM tasks WHERE id = (SELECT parent FROM tasks WHERE id = :task) AND joining IS NOT NULL
) THEN 1 ELSE 0 END AS awaited;

-- name: waits_of :many
-- The tasks that an open one waits for: upstreams, and the open children that it joins, or would join.
SELECT d.upstream AS task
FROM dependencies AS d
JOIN tasks AS t ON t.id = d.dependent
WHERE d.dependent = :task AND d.settled = 0 AND t.final = 0
UNION ALL
SELECT c.id AS task
FROM tasks AS p
JOIN tasks AS c ON c.parent = p.id
WHERE p.id = :task AND (p.joining IS NOT NULL OR :joins = 1) AND p.final = 0 AND c.final = 0
ORDER BY task
LIMIT :limit;

-- name: waits :many
-- Every open task that waits for another open one, by a dependency or because it joins it.
SELECT d.dependent AS task, d.upstream AS waited
FROM dependencies AS d
JOIN tasks AS t ON t.id = d.dependent
JOIN tasks AS u ON u.id = d.upstream
WHERE d.settled = 0 AND t.final = 0 AND u.final = 0
UNION ALL
SELECT p.id AS task, c.id AS waited
FROM tasks AS p
JOIN tasks AS c ON c.parent = p.id
WHERE p.joining IS NOT NULL AND p.final = 0 AND c.final = 0
ORDER BY task, waited;

-- name: parent_of :one?
SELECT parent
FROM tasks
WHERE id = :id;

-- name: standing_of :one?
-- Where a task stands, for those who wait for it.
SELECT machine, machine_version, state, parked, parent
FROM tasks
WHERE id = :id;

-- name: mark_settling :one?
-- Remember that a task ended or was parked, if that concerns anybody.
INSERT INTO settling (task, at, cascade, times)
SELECT CAST(:task AS text), CAST(:at AS bigint), CAST(:cascade AS bigint), 1
WHERE CAST(:cascade AS bigint) = 1
    OR CAST(:parent AS text) IS NOT NULL
    OR EXISTS (SELECT 1 FROM dependencies WHERE upstream = CAST(:task AS text) AND settled = 0)
ON CONFLICT (task) DO UPDATE SET
    times = settling.times + 1,
    cascade = CASE WHEN excluded.cascade = 1 THEN 1 ELSE settling.cascade END
RETURNING times;

-- name: mark_settlings@sqlite :many
-- The same for many tasks, a JSON array of objects; which of them concern somebody.
INSERT INTO settling (task, at, cascade, times)
SELECT value ->> 'task', value ->> 'at', 0, 1
FROM json_each(:rows)
WHERE value ->> 'parent' IS NOT NULL OR EXISTS (SELECT 1 FROM dependencies WHERE upstream = value ->> 'task' AND settled = 0)
ON CONFLICT (task) DO UPDATE SET times = settling.times + 1
RETURNING task;

-- name: mark_settlings@postgres :many
INSERT INTO settling (task, at, cascade, times)
SELECT r.task, r.at, 0, 1
FROM json_to_recordset(CAST(:rows AS json)) AS r (task text, at bigint, parent text)
WHERE r.parent IS NOT NULL OR EXISTS (SELECT 1 FROM dependencies WHERE upstream = r.task AND settled = 0)
ON CONFLICT (task) DO UPDATE SET times = settling.times + 1
RETURNING task;

-- name: settling :one?
SELECT cascade, times
FROM settling
WHERE task = :task;

-- name: settled :one?
-- It is told to all, unless somebody asked to look again.
DELETE FROM settling
WHERE task = :task AND times = :times
RETURNING task;

-- name: left_settling :many
-- Ends that nobody has gone on telling since a time.
SELECT task
FROM settling
WHERE at <= :before
ORDER BY at, task
LIMIT :limit;

-- name: stray_dependencies :many
-- Rows of tasks that wait for nothing, or are not there.
SELECT d.dependent
FROM dependencies AS d
LEFT JOIN tasks AS t ON t.id = d.dependent
WHERE t.id IS NULL OR t.blocked_by = '[]'
ORDER BY d.dependent;

-- name: stranded :many
-- Open tasks that are neither held nor claimable, and wait for nothing that is there.
SELECT t.id,
    CASE WHEN t.joining IS NOT NULL THEN 'children' WHEN t.blockers > 0 THEN 'a dependency' ELSE 'nothing' END AS waits_for
FROM tasks AS t
WHERE t.final = 0 AND t.parked IS NULL AND CASE
    WHEN t.joining IS NOT NULL THEN NOT EXISTS (
        SELECT 1
        FROM tasks AS c
        LEFT JOIN settling AS s ON s.task = c.id
        WHERE c.parent = t.id AND (c.final = 0 OR s.task IS NOT NULL)
    )
    WHEN t.blockers > 0 THEN NOT EXISTS (SELECT 1 FROM dependencies AS d WHERE d.dependent = t.id AND d.settled = 0)
    WHEN t.owner IS NULL THEN t.ready = 0 AND t.wake_at IS NULL
    ELSE t.lease_until IS NOT NULL AND t.wake_at IS NULL
END
ORDER BY t.id;

-- name: untold_ends :many
-- Open tasks that wait for one that is over, parked or gone, while nobody is to tell them.
SELECT d.dependent, d.upstream, d.on_failure, u.machine, u.machine_version, u.state, u.parked
FROM dependencies AS d
JOIN tasks AS t ON t.id = d.dependent
LEFT JOIN tasks AS u ON u.id = d.upstream
LEFT JOIN settling AS s ON s.task = d.upstream
WHERE d.settled = 0 AND t.final = 0 AND s.task IS NULL AND (u.id IS NULL OR u.final = 1 OR u.parked IS NOT NULL)
ORDER BY d.dependent, d.upstream;
