-- name: find_task :one?
-- A task by id, locked for a decision.
SELECT key, id, machine, machine_version, state, version, revision, digest, fields, owner, owner_root, session, epoch, priority, evidence, contributors, decisions, created_by, created_at, updated_at, head, lease_until, since, deadline, run_at, tags, needs, dedupe_key, parent, blocked_by, attempts, parked, joining, begun, blockers
FROM tasks
WHERE id = :id
/*lock*/;

-- name: find_tasks@sqlite :many
-- Tasks by their ids, a JSON array, locked for a decision in the order in which whoever locks several takes them.
SELECT key, id, machine, machine_version, state, version, revision, digest, fields, owner, owner_root, session, epoch, priority, evidence, contributors, decisions, created_by, created_at, updated_at, head, lease_until, since, deadline, run_at, tags, needs, dedupe_key, parent, blocked_by, attempts, parked, joining, begun, blockers
FROM tasks
WHERE id IN (SELECT value FROM json_each(:ids))
ORDER BY id
/*lock*/;

-- name: find_tasks@postgres :many
SELECT key, id, machine, machine_version, state, version, revision, digest, fields, owner, owner_root, session, epoch, priority, evidence, contributors, decisions, created_by, created_at, updated_at, head, lease_until, since, deadline, run_at, tags, needs, dedupe_key, parent, blocked_by, attempts, parked, joining, begun, blockers
FROM tasks
WHERE id = ANY (ARRAY(SELECT json_array_elements_text(CAST(:ids AS json))))
ORDER BY id
/*lock*/;

-- name: next_wake :one?
-- When time makes the next task claimable, or has, and nobody has put it among those that can be claimed yet.
SELECT wake_at
FROM tasks
WHERE ready = 0 AND machine = :machine AND wake_at IS NOT NULL
ORDER BY wake_at
LIMIT 1;

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

-- name: next_in_lane :many
-- The first claimable tasks of a lane from a place on. One that somebody is deciding on is passed over.
SELECT key, id, machine, machine_version, state, version, revision, digest, fields, owner, owner_root, session, epoch, priority, evidence, contributors, decisions, created_by, created_at, updated_at, head, lease_until, since, deadline, run_at, tags, needs, dedupe_key, parent, blocked_by, attempts, parked, joining, begun, blockers
FROM tasks
WHERE ready > 0 AND machine = :machine AND machine_version = :machine_version AND state = :state AND lane = :lane
    AND (place, key) >= (:place, :from_key)
ORDER BY place, key
LIMIT :limit
/*lock:skip*/;

-- name: next_in_lane_at_last :many
-- The same, waiting for whoever holds a row: it may be given back.
SELECT key, id, machine, machine_version, state, version, revision, digest, fields, owner, owner_root, session, epoch, priority, evidence, contributors, decisions, created_by, created_at, updated_at, head, lease_until, since, deadline, run_at, tags, needs, dedupe_key, parent, blocked_by, attempts, parked, joining, begun, blockers
FROM tasks
WHERE ready > 0 AND machine = :machine AND machine_version = :machine_version AND state = :state AND lane = :lane
    AND (place, key) >= (:place, :from_key)
ORDER BY place, key
LIMIT :limit
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
    since, deadline, run_at, tags, needs, dedupe_key, parent, blocked_by, attempts, parked, joining, begun, blockers, ready, wake_at, lane
) VALUES (
    :id, :machine, :machine_version, :state, :final, :version, :revision, :digest, :fields, :owner, :owner_root, :session, :epoch,
    :priority, :place, :evidence, :contributors, :decisions, :created_by, :created_at, :updated_at, :head, :lease_until,
    :since, :deadline, :run_at, :tags, :needs, :dedupe_key, :parent, :blocked_by, :attempts, :parked, :joining, :begun, :blockers, :ready, :wake_at, :lane
)
RETURNING key;

-- name: add_tasks@sqlite :many
-- The same for many rows, a JSON array of objects.
INSERT INTO tasks (
    id, machine, machine_version, state, final, version, revision, digest, fields, owner, owner_root, session, epoch, priority,
    place, evidence, contributors, decisions, created_by, created_at, updated_at, head, lease_until, since, deadline, run_at, tags,
    needs, dedupe_key, parent, blocked_by, attempts, parked, joining, begun, blockers, ready, wake_at, lane
)
SELECT
    value ->> 'id', value ->> 'machine', value ->> 'machine_version', value ->> 'state', value ->> 'final', value ->> 'version',
    value ->> 'revision', value ->> 'digest', value ->> 'fields', value ->> 'owner', value ->> 'owner_root', value ->> 'session',
    value ->> 'epoch', value ->> 'priority', value ->> 'place', value ->> 'evidence', value ->> 'contributors',
    value ->> 'decisions', value ->> 'created_by', value ->> 'created_at', value ->> 'updated_at', value ->> 'head',
    value ->> 'lease_until', value ->> 'since', value ->> 'deadline', value ->> 'run_at', value ->> 'tags', value ->> 'needs',
    value ->> 'dedupe_key', value ->> 'parent', value ->> 'blocked_by', value ->> 'attempts', value ->> 'parked',
    value ->> 'joining', value ->> 'begun', value ->> 'blockers', value ->> 'ready', value ->> 'wake_at', value ->> 'lane'
FROM json_each(:rows)
RETURNING key, id;

-- name: add_tasks@postgres :many
INSERT INTO tasks (
    id, machine, machine_version, state, final, version, revision, digest, fields, owner, owner_root, session, epoch, priority,
    place, evidence, contributors, decisions, created_by, created_at, updated_at, head, lease_until, since, deadline, run_at, tags,
    needs, dedupe_key, parent, blocked_by, attempts, parked, joining, begun, blockers, ready, wake_at, lane
)
SELECT
    id, machine, machine_version, state, final, version, revision, digest, fields, owner, owner_root, session, epoch, priority,
    place, evidence, contributors, decisions, created_by, created_at, updated_at, head, lease_until, since, deadline, run_at, tags,
    needs, dedupe_key, parent, blocked_by, attempts, parked, joining, begun, blockers, ready, wake_at, lane
FROM json_populate_recordset(CAST(NULL AS tasks), CAST(:rows AS json))
RETURNING key, id;

-- name: advance_task :sure
-- The step's new row, while the task still is what was read.
UPDATE tasks
SET state = :state, final = :final, version = :version, revision = :revision, digest = :digest, fields = :fields, owner = :owner,
    owner_root = :owner_root, session = :session, epoch = :epoch, evidence = :evidence, contributors = :contributors,
    decisions = :decisions, updated_at = :updated_at, head = :head,
    lease_until = :lease_until, since = :since, deadline = :deadline, run_at = :run_at, place = :place, attempts = :attempts,
    parked = :parked, joining = :joining, begun = :begun, ready = :ready, wake_at = :wake_at, lane = coalesce(:lane, lane)
WHERE key = :key AND version = :expected_version AND epoch = :expected_epoch
RETURNING version;

-- name: stay_task :sure
-- The same for a step that leaves a task where it is, in the same hands, with the same words: most columns, and the indexes of most,
-- are left alone.
UPDATE tasks
SET version = :version, updated_at = :updated_at, head = :head, begun = :begun, lease_until = :lease_until, ready = :ready,
    wake_at = :wake_at
WHERE key = :key AND epoch = :expected_epoch AND version = :expected_version
RETURNING version;

-- name: advance_tasks@sqlite :many
-- The same as `advance_task` for many rows, a JSON array of objects: those that still are what was read.
UPDATE tasks
SET
    state = r.state, final = r.final, version = r.version, revision = r.revision, digest = r.digest, fields = r.fields,
    owner = r.owner, owner_root = r.owner_root, session = r.session, epoch = r.epoch, evidence = r.evidence,
    contributors = r.contributors, decisions = r.decisions, updated_at = r.updated_at, head = r.head, lease_until = r.lease_until,
    since = r.since, deadline = r.deadline, run_at = r.run_at, place = r.place, attempts = r.attempts, parked = r.parked,
    joining = r.joining, begun = r.begun, ready = r.ready, wake_at = r.wake_at, lane = coalesce(r.lane, tasks.lane)
FROM (
    SELECT
        value ->> 'key' AS key, value ->> 'expected_version' AS expected_version, value ->> 'expected_epoch' AS expected_epoch,
        value ->> 'state' AS state, value ->> 'final' AS final, value ->> 'version' AS version, value ->> 'revision' AS revision,
        value ->> 'digest' AS digest, value ->> 'fields' AS fields, value ->> 'owner' AS owner,
        value ->> 'owner_root' AS owner_root, value ->> 'session' AS session, value ->> 'epoch' AS epoch,
        value ->> 'evidence' AS evidence, value ->> 'contributors' AS contributors, value ->> 'decisions' AS decisions,
        value ->> 'updated_at' AS updated_at, value ->> 'head' AS head, value ->> 'lease_until' AS lease_until,
        value ->> 'since' AS since, value ->> 'deadline' AS deadline, value ->> 'run_at' AS run_at, value ->> 'place' AS place,
        value ->> 'attempts' AS attempts, value ->> 'parked' AS parked, value ->> 'joining' AS joining, value ->> 'begun' AS begun, value ->> 'ready' AS ready,
        value ->> 'wake_at' AS wake_at, value ->> 'lane' AS lane
    FROM json_each(:rows)
) AS r
WHERE tasks.key = r.key AND tasks.version = r.expected_version AND tasks.epoch = r.expected_epoch
RETURNING key;

-- name: advance_tasks@postgres :many
UPDATE tasks
SET
    state = r.state, final = r.final, version = r.version, revision = r.revision, digest = r.digest, fields = r.fields,
    owner = r.owner, owner_root = r.owner_root, session = r.session, epoch = r.epoch, evidence = r.evidence,
    contributors = r.contributors, decisions = r.decisions, updated_at = r.updated_at, head = r.head, lease_until = r.lease_until,
    since = r.since, deadline = r.deadline, run_at = r.run_at, place = r.place, attempts = r.attempts, parked = r.parked,
    joining = r.joining, begun = r.begun, ready = r.ready, wake_at = r.wake_at, lane = coalesce(r.lane, tasks.lane)
FROM json_to_recordset(CAST(:rows AS json)) AS r (
    key bigint, expected_version bigint, expected_epoch bigint, state text, final bigint, version bigint, revision bigint,
    digest text, fields text, owner text, owner_root text, session text, epoch bigint, evidence text, contributors text,
    decisions text, updated_at bigint, head text, lease_until bigint, since bigint, deadline bigint, run_at bigint, place bigint,
    attempts text, parked text, joining text, begun text, ready bigint, wake_at bigint, lane bigint
)
WHERE tasks.key = r.key AND tasks.version = r.expected_version AND tasks.epoch = r.expected_epoch
RETURNING tasks.key;

-- name: unblock_task :one?
-- A task waits for fewer others, only while it still is what was read.
UPDATE tasks
SET blockers = :blockers, ready = :ready, wake_at = :wake_at
WHERE key = :key AND version = :version AND blockers = :expected
RETURNING blockers;

-- name: tasks_after :many
-- Every task row in key order, for verification.
SELECT key, id, machine, machine_version, state, version, revision, digest, fields, owner, owner_root, session, epoch, priority, evidence, contributors, decisions, created_by, created_at, updated_at, head, lease_until, since, deadline, run_at, tags, needs, dedupe_key, parent, blocked_by, attempts, parked, joining, begun, blockers, final, place, (SELECT l.text FROM lanes AS l WHERE l.key = tasks.lane) AS lane
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
SELECT key, id, machine, machine_version, state, version, revision, digest, fields, owner, owner_root, session, epoch, priority, evidence, contributors, decisions, created_by, created_at, updated_at, head, lease_until, since, deadline, run_at, tags, needs, dedupe_key, parent, blocked_by, attempts, parked, joining, begun, blockers
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
SELECT key, id, machine, machine_version, state, version, revision, digest, fields, owner, owner_root, session, epoch, priority, evidence, contributors, decisions, created_by, created_at, updated_at, head, lease_until, since, deadline, run_at, tags, needs, dedupe_key, parent, blocked_by, attempts, parked, joining, begun, blockers
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
SELECT key, id, machine, machine_version, state, version, revision, digest, fields, owner, owner_root, session, epoch, priority, evidence, contributors, decisions, created_by, created_at, updated_at, head, lease_until, since, deadline, run_at, tags, needs, dedupe_key, parent, blocked_by, attempts, parked, joining, begun, blockers
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
SELECT key, id, machine, machine_version, state, version, revision, digest, fields, owner, owner_root, session, epoch, priority, evidence, contributors, decisions, created_by, created_at, updated_at, head, lease_until, since, deadline, run_at, tags, needs, dedupe_key, parent, blocked_by, attempts, parked, joining, begun, blockers
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
