-- What was pruned, so that it is not missed, and the mark of a database that a copy is still being written into.

CREATE TABLE prunings (
    number INTEGER PRIMARY KEY CHECK (number >= 1),
    before INTEGER NOT NULL,
    payloads INTEGER NOT NULL CHECK (payloads IN (0, 1)),
    at INTEGER NOT NULL,
    hash TEXT NOT NULL
);

CREATE TABLE pruned (
    task INTEGER PRIMARY KEY REFERENCES tasks (key),
    version INTEGER NOT NULL,
    at INTEGER NOT NULL,
    hash TEXT NOT NULL
);

CREATE TABLE unfinished (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    copy TEXT NOT NULL,
    source TEXT NOT NULL,
    begun_at INTEGER NOT NULL
);
