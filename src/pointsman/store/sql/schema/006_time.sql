-- Holds of operators, and where the schedules of machines stand.

CREATE TABLE holds (
    id TEXT NOT NULL PRIMARY KEY CHECK (length(id) = 36),
    machine TEXT,
    event TEXT,
    state TEXT,
    tag TEXT,
    reason TEXT NOT NULL,
    begins INTEGER NOT NULL,
    until INTEGER,
    release_per_s INTEGER NOT NULL CHECK (release_per_s > 0),
    placed_by TEXT NOT NULL CHECK (length(trim(placed_by)) > 0),
    placed_at INTEGER NOT NULL,
    lifted_by TEXT,
    lifted_at INTEGER,
    hash TEXT NOT NULL,
    next_at INTEGER NOT NULL,
    read_until INTEGER NOT NULL
);

CREATE INDEX holds_by_use ON holds (read_until);

CREATE TABLE schedules (
    machine TEXT NOT NULL,
    name TEXT NOT NULL,
    spec TEXT NOT NULL,
    next_at INTEGER NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (machine, name)
) WITHOUT ROWID;
