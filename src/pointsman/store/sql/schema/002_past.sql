-- The numbered feed, snapshots that make the past cheap, and proposals that outlive their caller.

CREATE TABLE feed (
    seq INTEGER PRIMARY KEY,
    task INTEGER NOT NULL REFERENCES tasks (key),
    version INTEGER NOT NULL,
    entry INTEGER NOT NULL UNIQUE REFERENCES entries (key),
    at INTEGER NOT NULL,
    hash TEXT NOT NULL
);

CREATE INDEX feed_by_task ON feed (task, seq);
CREATE INDEX feed_by_time ON feed (at, seq);

CREATE TABLE snapshots (
    task INTEGER NOT NULL REFERENCES tasks (key),
    version INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (task, version)
) WITHOUT ROWID;

CREATE TABLE proposals (
    id TEXT NOT NULL PRIMARY KEY CHECK (length(id) = 36),
    task TEXT NOT NULL,
    event TEXT NOT NULL,
    asked TEXT NOT NULL,
    principal TEXT NOT NULL,
    request_key TEXT NOT NULL,
    request_digest TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'accepted', 'refused', 'superseded')),
    version INTEGER,
    refusal TEXT,
    settled_at INTEGER,
    hash TEXT NOT NULL,
    claimed_until INTEGER NOT NULL,
    UNIQUE (principal, request_key)
);

CREATE UNIQUE INDEX proposals_one_pending ON proposals (task) WHERE status = 'pending';
CREATE INDEX proposals_unclaimed ON proposals (claimed_until) WHERE status = 'pending';
