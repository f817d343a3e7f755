-- Durable steps of tasks. An operation's row is what the last of its entries says, which is that of `version`; `begun` of a task are
-- its operations that are not settled. What a replaced owner says of one is no outcome: it is kept beside it, as testimony.
-- A checkpoint is an owner's own word on how far it is: the last one of a task.

ALTER TABLE tasks ADD COLUMN begun TEXT NOT NULL DEFAULT '[]';

CREATE TABLE operations (
    id TEXT NOT NULL PRIMARY KEY CHECK (length(id) = 36),
    task INTEGER NOT NULL REFERENCES tasks (key),
    name TEXT NOT NULL CHECK (length(trim(name)) > 0),
    kind TEXT NOT NULL CHECK (kind IN ('repeatable', 'keyed', 'lookup', 'ask')),
    effect TEXT,
    request TEXT NOT NULL,
    request_digest TEXT NOT NULL,
    settle INTEGER NOT NULL CHECK (settle >= 0),
    compensates TEXT,
    status TEXT NOT NULL CHECK (status IN ('started', 'succeeded', 'failed', 'not_done')),
    epoch INTEGER NOT NULL,
    attempt INTEGER NOT NULL CHECK (attempt >= 1),
    begun_by TEXT NOT NULL CHECK (length(trim(begun_by)) > 0),
    begun_at INTEGER NOT NULL,
    deadline INTEGER NOT NULL,
    settled_by TEXT,
    settled_at INTEGER,
    result TEXT NOT NULL,
    note TEXT,
    version INTEGER NOT NULL,
    hash TEXT NOT NULL,
    UNIQUE (task, name)
);

CREATE TABLE testimonies (
    key INTEGER PRIMARY KEY,
    operation TEXT NOT NULL REFERENCES operations (id),
    by TEXT NOT NULL CHECK (length(trim(by)) > 0),
    epoch INTEGER,
    at INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('succeeded', 'failed', 'not_done')),
    result TEXT NOT NULL,
    note TEXT,
    hash TEXT NOT NULL
);

CREATE INDEX testimonies_of_operation ON testimonies (operation, key);

CREATE TABLE checkpoints (
    task INTEGER PRIMARY KEY REFERENCES tasks (key),
    number INTEGER NOT NULL CHECK (number >= 1),
    version INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    at INTEGER NOT NULL,
    by TEXT NOT NULL CHECK (length(trim(by)) > 0),
    data TEXT NOT NULL,
    plan TEXT NOT NULL,
    progress TEXT NOT NULL,
    hash TEXT NOT NULL
);
