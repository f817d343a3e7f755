-- Receivers, and what they are to be told. A message is written with its change, once for each hook that listens. The messages of a
-- task for a hook stand in one lane, and leave it in the order of their keys; a lane is there as long as a message is.

CREATE TABLE hooks (
    id TEXT NOT NULL PRIMARY KEY CHECK (length(id) = 36),
    kind TEXT NOT NULL CHECK (kind IN ('webhook', 'slack', 'ntfy', 'cloudevents', 'call')),
    url TEXT NOT NULL,
    topics TEXT NOT NULL,
    machine TEXT,
    link TEXT NOT NULL,
    private INTEGER NOT NULL CHECK (private IN (0, 1)),
    secrets TEXT NOT NULL,
    made_by TEXT NOT NULL CHECK (length(trim(made_by)) > 0),
    made_at INTEGER NOT NULL,
    disabled_at INTEGER,
    removed_by TEXT,
    removed_at INTEGER,
    hash TEXT NOT NULL
);

CREATE TABLE messages (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    hook TEXT NOT NULL,
    id TEXT NOT NULL,
    topic TEXT NOT NULL,
    task TEXT NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL,
    at INTEGER NOT NULL,
    hash TEXT NOT NULL
);

CREATE INDEX messages_of_lane ON messages (hook, task, key);

CREATE TABLE message_lanes (
    hook TEXT NOT NULL,
    task TEXT NOT NULL,
    next_at INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    claim INTEGER NOT NULL,
    parked_at INTEGER,
    error TEXT NOT NULL,
    PRIMARY KEY (hook, task)
);

CREATE INDEX message_lanes_due ON message_lanes (hook, next_at, task) WHERE parked_at IS NULL;
CREATE INDEX message_lanes_parked ON message_lanes (hook, task) WHERE parked_at IS NOT NULL;
