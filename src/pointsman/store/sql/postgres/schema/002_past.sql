-- The numbered feed, snapshots that make the past cheap, and proposals that outlive their caller, as sql/schema/002_past.sql.

CREATE TABLE feed (
    seq bigint PRIMARY KEY,
    task bigint NOT NULL REFERENCES tasks (key),
    version bigint NOT NULL,
    entry bigint NOT NULL UNIQUE REFERENCES entries (key),
    at bigint NOT NULL,
    hash text COLLATE "C" NOT NULL
);

CREATE INDEX feed_by_task ON feed (task, seq);
CREATE INDEX feed_by_time ON feed (at, seq);

CREATE TABLE snapshots (
    task bigint NOT NULL REFERENCES tasks (key),
    version bigint NOT NULL,
    body text COLLATE "C" NOT NULL,
    PRIMARY KEY (task, version)
);

CREATE TABLE proposals (
    id text COLLATE "C" NOT NULL PRIMARY KEY CHECK (length(id) = 36),
    task text COLLATE "C" NOT NULL,
    event text COLLATE "C" NOT NULL,
    asked text COLLATE "C" NOT NULL,
    principal text COLLATE "C" NOT NULL,
    request_key text COLLATE "C" NOT NULL,
    request_digest text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    status text COLLATE "C" NOT NULL CHECK (status IN ('pending', 'accepted', 'refused', 'superseded')),
    version bigint,
    refusal text COLLATE "C",
    settled_at bigint,
    hash text COLLATE "C" NOT NULL,
    claimed_until bigint NOT NULL,
    UNIQUE (principal, request_key)
);

CREATE UNIQUE INDEX proposals_one_pending ON proposals (task) WHERE status = 'pending';
CREATE INDEX proposals_unclaimed ON proposals (claimed_until) WHERE status = 'pending';
