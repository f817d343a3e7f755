-- name: find_task :one?
-- A task by id, locked for a decision.
SELECT key, id, machine, machine_version, state, version, revision, digest, fields, owner, owner_root, session, epoch, priority, evidence, contributors, decisions, created_by, created_at, updated_at, head, lease_until, since, deadline, run_at, tags, needs, dedupe_key, parent, blocked_by, attempts, parked, joining, blockers
FROM tasks
WHERE id = :id
/*lock*/;

-- name: some_can_wake :one
-- Whether time has made a task claimable that nobody has put among those that can be claimed yet.
SELECT EXISTS (
    SELECT 1 FROM tasks WHERE ready = 0 AND machine = :machine AND wake_at <= :now
) AS some;

-- name: wake :many
-- Put tasks that time has made claimable among those that can be claimed. One that somebody is deciding on is passed over.
WITH found AS MATERIALIZED (
    SELECT t.key FROM tasks AS t
    WHERE t.ready = 0 AND t.machine = :machine AND t.wake_at <= :now
    ORDER BY t.wake_at, t.key
    LIMIT :limit
    /*lock:skip*/
)
UPDATE tasks
SET ready = 1
WHERE key IN (SELECT found.key FROM found)
RETURNING key;

-- name: wake_at_last :many
-- The same, waiting for whoever holds a row: it may be left as it was.
WITH found AS MATERIALIZED (
    SELECT t.key FROM tasks AS t
    WHERE t.ready = 0 AND t.machine = :machine AND t.wake_at <= :now
    ORDER BY t.wake_at, t.key
    LIMIT :limit
    /*lock*/
)
UPDATE tasks
SET ready = 1
WHERE key IN (SELECT found.key FROM found)
RETURNING key;

-- name: next_in_lane :one?
-- The first claimable task of a lane from a place on. One that somebody is deciding on is passed over.
SELECT key, id, machine, machine_version, state, version, revision, digest, fields, owner, owner_root, session, epoch, priority, evidence, contributors, decisions, created_by, created_at, updated_at, head, lease_until, since, deadline, run_at, tags, needs, dedupe_key, parent, blocked_by, attempts, parked, joining, blockers
FROM tasks
WHERE ready > 0 AND machine = :machine AND machine_version = :machine_version AND state = :state AND lane = :lane
    AND (place, key) >= (:place, :from_key)
ORDER BY place, key
LIMIT 1
/*lock:skip*/;

-- name: next_in_lane_at_last :one?
-- The same, waiting for whoever holds a row: it may be given back.
SELECT key, id, machine, machine_version, state, version, revision, digest, fields, owner, owner_root, session, epoch, priority, evidence, contributors, decisions, created_by, created_at, updated_at, head, lease_until, since, deadline, run_at, tags, needs, dedupe_key, parent, blocked_by, attempts, parked, joining, blockers
FROM tasks
WHERE ready > 0 AND machine = :machine AND machine_version = :machine_version AND state = :state AND lane = :lane
    AND (place, key) >= (:place, :from_key)
ORDER BY place, key
LIMIT 1
/*lock*/;

-- name: tasks_due :many
-- A page of the tasks whose deadline has passed, the longest due first.
SELECT deadline, key, id, machine, machine_version, state, updated_at, tags, parked
FROM tasks
WHERE deadline <= :now AND (deadline, key) > (:after, :after_key)
ORDER BY deadline, key
LIMIT :limit;

-- name: tasks_untouched :many
-- The tasks of a state that have not moved since a time and that somebody may acquire as they are, now or when their time comes.
SELECT machine, machine_version, tags, updated_at, owner
FROM tasks
WHERE state = :state AND final = 0 AND updated_at <= :since AND parked IS NULL AND (owner IS NULL OR lease_until IS NOT NULL)
ORDER BY updated_at
LIMIT :limit;

-- name: renew_lease :one?
-- Move the end of a lease, while the task is in the epoch that was read.
UPDATE tasks
SET lease_until = :lease_until, wake_at = :lease_until, ready = 0
WHERE key = :key AND epoch = :epoch
RETURNING key;

-- name: prolong_lease :none
-- Keep a lease from running out before a time.
UPDATE tasks
SET lease_until = :lease_until, wake_at = :lease_until, ready = 0
WHERE id = :id AND lease_until < :lease_until;

-- name: add_task :one
INSERT INTO tasks (
    id, machine, machine_version, state, final, version, revision, digest, fields, owner, owner_root, session, epoch,
    priority, place, evidence, contributors, decisions, created_by, created_at, updated_at, head, lease_until,
    since, deadline, run_at, tags, needs, dedupe_key, parent, blocked_by, attempts, parked, joining, blockers, ready, wake_at, lane
) VALUES (
    :id, :machine, :machine_version, :state, :final, :version, :revision, :digest, :fields, :owner, :owner_root, :session, :epoch,
    :priority, :place, :evidence, :contributors, :decisions, :created_by, :created_at, :updated_at, :head, :lease_until,
    :since, :deadline, :run_at, :tags, :needs, :dedupe_key, :parent, :blocked_by, :attempts, :parked, :joining, :blockers, :ready, :wake_at, :lane
)
RETURNING key;

-- name: advance_task :sure
-- The step's new row, while the task still is what was read.
UPDATE tasks
SET state = :state, final = :final, version = :version, revision = :revision, digest = :digest, fields = :fields, owner = :owner,
    owner_root = :owner_root, session = :session, epoch = :epoch, evidence = :evidence, contributors = :contributors,
    decisions = :decisions, updated_at = :updated_at, head = :head,
    lease_until = :lease_until, since = :since, deadline = :deadline, run_at = :run_at, place = :place, attempts = :attempts,
    parked = :parked, joining = :joining, ready = :ready, wake_at = :wake_at, lane = coalesce(:lane, lane)
WHERE key = :key AND version = :expected_version AND epoch = :expected_epoch
RETURNING version;

-- name: unblock_task :one?
-- A task waits for fewer others, only while it still is what was read.
UPDATE tasks
SET blockers = :blockers, ready = :ready, wake_at = :wake_at
WHERE key = :key AND version = :version AND blockers = :expected
RETURNING blockers;

-- name: tasks_after :many
-- Every task row in key order, for verification.
SELECT key, id, machine, machine_version, state, version, revision, digest, fields, owner, owner_root, session, epoch, priority, evidence, contributors, decisions, created_by, created_at, updated_at, head, lease_until, since, deadline, run_at, tags, needs, dedupe_key, parent, blocked_by, attempts, parked, joining, blockers, final, place, (SELECT l.text FROM lanes AS l WHERE l.key = tasks.lane) AS lane
FROM tasks
WHERE key > :after
ORDER BY key
LIMIT :limit;

-- name: tasks_of :one
-- Whether any task was made of a machine version.
SELECT EXISTS (
    SELECT 1 FROM tasks WHERE machine = :machine AND machine_version = :machine_version
) AS tasks;

-- name: open_tasks_of :one
-- Whether tasks of a machine version are still open.
SELECT EXISTS (
    SELECT 1 FROM tasks WHERE final = 0 AND machine = :machine AND machine_version = :machine_version
) AS open_tasks;

-- name: states :many
-- Every state that some task is in. Looks up the next one instead of reading all rows.
WITH RECURSIVE found (state) AS (
    SELECT min(t.state) FROM tasks AS t
    UNION ALL
    SELECT (SELECT min(t.state) FROM tasks AS t WHERE t.state > found.state) FROM found WHERE found.state IS NOT NULL
)
SELECT state
FROM found
WHERE state IS NOT NULL;

-- name: list_by_created_at :many
-- A page of one state, in order of creation.
SELECT key, id, machine, machine_version, state, version, revision, digest, fields, owner, owner_root, session, epoch, priority, evidence, contributors, decisions, created_by, created_at, updated_at, head, lease_until, since, deadline, run_at, tags, needs, dedupe_key, parent, blocked_by, attempts, parked, joining, blockers
FROM tasks
WHERE state = :state AND final = :final
    AND (created_at, id) > (:after, :after_id)
    AND (machine = :machine OR :machine IS NULL)
    AND (owner = :owner OR :owner IS NULL)
    AND (owner = :inbox OR (owner IS NULL AND state = :initial) OR :inbox IS NULL)
ORDER BY created_at, id
LIMIT :limit;

-- name: list_by_updated_at :many
-- The same, in order of the last entry.
SELECT key, id, machine, machine_version, state, version, revision, digest, fields, owner, owner_root, session, epoch, priority, evidence, contributors, decisions, created_by, created_at, updated_at, head, lease_until, since, deadline, run_at, tags, needs, dedupe_key, parent, blocked_by, attempts, parked, joining, blockers
FROM tasks
WHERE state = :state AND final = :final
    AND (updated_at, id) > (:after, :after_id)
    AND (machine = :machine OR :machine IS NULL)
    AND (owner = :owner OR :owner IS NULL)
    AND (owner = :inbox OR (owner IS NULL AND state = :initial) OR :inbox IS NULL)
ORDER BY updated_at, id
LIMIT :limit;

-- name: list_by_priority :many
-- The same, in the order in which tasks are claimed.
SELECT key, id, machine, machine_version, state, version, revision, digest, fields, owner, owner_root, session, epoch, priority, evidence, contributors, decisions, created_by, created_at, updated_at, head, lease_until, since, deadline, run_at, tags, needs, dedupe_key, parent, blocked_by, attempts, parked, joining, blockers
FROM tasks
WHERE state = :state AND final = :final
    AND (place, id) > (:after, :after_id)
    AND (machine = :machine OR :machine IS NULL)
    AND (owner = :owner OR :owner IS NULL)
    AND (owner = :inbox OR (owner IS NULL AND state = :initial) OR :inbox IS NULL)
ORDER BY place, id
LIMIT :limit;

-- name: list_owned :many
-- A page of the open tasks that one owner holds. They are few, and sorted here.
SELECT key, id, machine, machine_version, state, version, revision, digest, fields, owner, owner_root, session, epoch, priority, evidence, contributors, decisions, created_by, created_at, updated_at, head, lease_until, since, deadline, run_at, tags, needs, dedupe_key, parent, blocked_by, attempts, parked, joining, blockers
FROM tasks
WHERE final = 0
    AND owner = :owner
    AND (CASE :order WHEN 'created_at' THEN created_at WHEN 'updated_at' THEN updated_at ELSE place END, id) > (:after, :after_id)
    AND (machine = :machine OR :machine IS NULL)
    AND (owner = :inbox OR :inbox IS NULL)
ORDER BY CASE :order WHEN 'created_at' THEN created_at WHEN 'updated_at' THEN updated_at ELSE place END, id
LIMIT :limit;

-- name: count_tasks :many
-- Tasks of each machine version by state.
SELECT machine, machine_version, state, count(*) AS tasks
FROM tasks
GROUP BY machine, machine_version, state
ORDER BY machine, machine_version, state;

-- name: count_waiting :many
-- Tasks that wait to be claimed, by machine and state.
SELECT machine, state, count(*) AS tasks
FROM tasks
WHERE ready > 0 AND owner IS NULL
GROUP BY machine, state
ORDER BY machine, state;
