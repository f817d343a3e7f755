-- Order and time of work: when a task may begin, after what, how often it was tried, and whether it is out of work.
-- `ready` is 1 while nobody holds the task and nothing keeps it from being claimed, else 0; at `wake_at` time alone makes it
-- claimable: its lease runs out, or its time to run has come.

ALTER TABLE tasks ADD COLUMN since bigint NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN deadline bigint;
ALTER TABLE tasks ADD COLUMN run_at bigint;
ALTER TABLE tasks ADD COLUMN tags text COLLATE "C" NOT NULL DEFAULT '[]';
ALTER TABLE tasks ADD COLUMN needs text COLLATE "C" NOT NULL DEFAULT '[]';
ALTER TABLE tasks ADD COLUMN dedupe_key text COLLATE "C";
ALTER TABLE tasks ADD COLUMN parent text COLLATE "C";
ALTER TABLE tasks ADD COLUMN blocked_by text COLLATE "C" NOT NULL DEFAULT '[]';
ALTER TABLE tasks ADD COLUMN attempts text COLLATE "C" NOT NULL DEFAULT '{"deferred":0,"error":0,"lost":0}';
ALTER TABLE tasks ADD COLUMN parked text COLLATE "C";
ALTER TABLE tasks ADD COLUMN blockers bigint NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN ready bigint NOT NULL DEFAULT 0 CHECK (ready IN (0, 1));
ALTER TABLE tasks ADD COLUMN wake_at bigint;

UPDATE tasks SET ready = 1 WHERE final = 0 AND owner IS NULL;
UPDATE tasks SET wake_at = lease_until WHERE final = 0 AND owner IS NOT NULL;

DROP INDEX tasks_claimable;
DROP INDEX tasks_leased;
CREATE INDEX tasks_ready ON tasks (machine, machine_version, state, place, key) WHERE ready > 0;
CREATE INDEX tasks_waking ON tasks (machine, wake_at) WHERE ready = 0 AND wake_at IS NOT NULL;
CREATE INDEX tasks_due ON tasks (deadline) WHERE deadline IS NOT NULL;
CREATE UNIQUE INDEX tasks_deduped ON tasks (machine, dedupe_key) WHERE dedupe_key IS NOT NULL;
