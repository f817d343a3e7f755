-- What is asked of the PostgreSQL server itself; SQLite has nothing like it.

-- name: settle_session :one
-- The deadlines of a session, where its names are looked up, and what its durability rests on.
SELECT
    set_config('statement_timeout', :statement_ms, false) AS statement_timeout,
    set_config('lock_timeout', :lock_ms, false) AS lock_timeout,
    set_config('idle_in_transaction_session_timeout', :idle_ms, false) AS idle_timeout,
    set_config('search_path', 'pointsman', false) AS search_path,
    current_setting('server_version_num') AS server_version,
    current_setting('fsync') AS fsync,
    current_setting('synchronous_commit') AS synchronous_commit,
    current_setting('server_encoding') AS encoding;

-- name: clock :one
-- The server's time in µs, whatever moment the transaction began at.
SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS bigint) AS now;

-- name: clock_of_writer :one
-- The same, held against whoever waits for writers: nobody learns of a later time before this one is committed.
WITH held AS MATERIALIZED (SELECT pg_advisory_xact_lock_shared(1347373391, 3))
SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS bigint) AS now
FROM held;

-- name: mark_log :none
-- Something to write, so that this COMMIT waits for a synchronous standby, and with it for all that was committed before.
SELECT pg_logical_emit_message(true, 'pointsman', '') AS position;

-- name: sure :one
-- Around a statement that must find its row: where it finds none, dividing by it ends the transaction.
WITH found AS (
    /*statement*/
)
SELECT 1 / count(*) AS sure
FROM found;

-- name: settle_relay :one
-- A wake-up may be lost, so it need not wait for a disk. The name is for whoever looks at a server's sessions.
SELECT
    set_config('synchronous_commit', 'off', false) AS synchronous_commit,
    set_config('application_name', 'pointsman-wake-ups', false) AS application_name;

-- name: listen :none
LISTEN pointsman;

-- name: notify :one
SELECT pg_notify('pointsman', :message) AS told;

-- name: take_schema :none
-- One process at a time looks at the schema and moves it forward.
SELECT pg_advisory_xact_lock(1347373391, 1) AS taken;

-- name: schema_found :one
-- Whether the schema is there, whether it is ours, and how many tables it holds.
SELECT
    EXISTS (SELECT 1 FROM pg_namespace AS n WHERE n.nspname = 'pointsman') AS there,
    EXISTS (
        SELECT 1 FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = 'pointsman' AND c.relname = 'steps'
    ) AS ours,
    (
        SELECT count(*) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = 'pointsman' AND c.relkind IN ('r', 'p')
    ) AS tables;

-- name: make_schema :none
CREATE SCHEMA pointsman;

-- name: make_steps :none
-- Which steps of the schema were applied.
CREATE TABLE steps (number bigint PRIMARY KEY, name text COLLATE "C" NOT NULL);

-- name: last_step :one
SELECT coalesce(max(number), 0) AS number
FROM steps;

-- name: add_step :none
INSERT INTO steps (number, name) VALUES (:number, :name);

-- name: unsound :many
-- Indexes and constraints that PostgreSQL does not trust, and pages whose checksum failed since the counters were reset.
SELECT format('index %s is invalid: rebuild it', c.relname) AS fault
FROM pg_index AS i
JOIN pg_class AS c ON c.oid = i.indexrelid
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = 'pointsman' AND NOT (i.indisvalid AND i.indisready)
UNION ALL
SELECT format('constraint %s of %s was never validated', k.conname, c.relname) AS fault
FROM pg_constraint AS k
JOIN pg_class AS c ON c.oid = k.conrelid
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = 'pointsman' AND NOT k.convalidated
UNION ALL
SELECT format('%s pages of this database failed their checksum', d.checksum_failures) AS fault
FROM pg_stat_database AS d
WHERE d.datname = current_database() AND d.checksum_failures > 0
ORDER BY fault;

-- name: read_every_row :many
-- Every value of every row, so that what cannot be read is met.
SELECT 'machines' AS name, count(length(CAST(t AS text))) AS rows FROM machines AS t
UNION ALL SELECT 'tasks' AS name, count(length(CAST(t AS text))) AS rows FROM tasks AS t
UNION ALL SELECT 'entries' AS name, count(length(CAST(t AS text))) AS rows FROM entries AS t
UNION ALL SELECT 'unnumbered' AS name, count(length(CAST(t AS text))) AS rows FROM unnumbered AS t
UNION ALL SELECT 'payloads' AS name, count(length(CAST(t AS text))) AS rows FROM payloads AS t
UNION ALL SELECT 'requests' AS name, count(length(CAST(t AS text))) AS rows FROM requests AS t
UNION ALL SELECT 'judgements' AS name, count(length(CAST(t AS text))) AS rows FROM judgements AS t
UNION ALL SELECT 'feed' AS name, count(length(CAST(t AS text))) AS rows FROM feed AS t
UNION ALL SELECT 'snapshots' AS name, count(length(CAST(t AS text))) AS rows FROM snapshots AS t
UNION ALL SELECT 'proposals' AS name, count(length(CAST(t AS text))) AS rows FROM proposals AS t
UNION ALL SELECT 'holds' AS name, count(length(CAST(t AS text))) AS rows FROM holds AS t
UNION ALL SELECT 'hooks' AS name, count(length(CAST(t AS text))) AS rows FROM hooks AS t
UNION ALL SELECT 'messages' AS name, count(length(CAST(t AS text))) AS rows FROM messages AS t
UNION ALL SELECT 'message_lanes' AS name, count(length(CAST(t AS text))) AS rows FROM message_lanes AS t
UNION ALL SELECT 'schedules' AS name, count(length(CAST(t AS text))) AS rows FROM schedules AS t
UNION ALL SELECT 'refusals' AS name, count(length(CAST(t AS text))) AS rows FROM refusals AS t
UNION ALL SELECT 'operations' AS name, count(length(CAST(t AS text))) AS rows FROM operations AS t
UNION ALL SELECT 'testimonies' AS name, count(length(CAST(t AS text))) AS rows FROM testimonies AS t
UNION ALL SELECT 'checkpoints' AS name, count(length(CAST(t AS text))) AS rows FROM checkpoints AS t
UNION ALL SELECT 'prunings' AS name, count(length(CAST(t AS text))) AS rows FROM prunings AS t
UNION ALL SELECT 'pruned' AS name, count(length(CAST(t AS text))) AS rows FROM pruned AS t
UNION ALL SELECT 'dependencies' AS name, count(length(CAST(t AS text))) AS rows FROM dependencies AS t
UNION ALL SELECT 'settling' AS name, count(length(CAST(t AS text))) AS rows FROM settling AS t
UNION ALL SELECT 'lanes' AS name, count(length(CAST(t AS text))) AS rows FROM lanes AS t
UNION ALL SELECT 'limit_uses' AS name, count(length(CAST(t AS text))) AS rows FROM limit_uses AS t
UNION ALL SELECT 'clock' AS name, count(length(CAST(t AS text))) AS rows FROM clock AS t
UNION ALL SELECT 'unfinished' AS name, count(length(CAST(t AS text))) AS rows FROM unfinished AS t
UNION ALL SELECT 'steps' AS name, count(length(CAST(t AS text))) AS rows FROM steps AS t;
