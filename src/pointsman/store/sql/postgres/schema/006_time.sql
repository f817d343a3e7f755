-- Holds of operators, and where the schedules of machines stand.

CREATE TABLE holds (
    id text COLLATE "C" NOT NULL PRIMARY KEY CHECK (length(id) = 36),
    machine text COLLATE "C",
    event text COLLATE "C",
    state text COLLATE "C",
    tag text COLLATE "C",
    reason text COLLATE "C" NOT NULL,
    begins bigint NOT NULL,
    until bigint,
    release_per_s bigint NOT NULL CHECK (release_per_s > 0),
    placed_by text COLLATE "C" NOT NULL CHECK (length(trim(placed_by)) > 0),
    placed_at bigint NOT NULL,
    lifted_by text COLLATE "C",
    lifted_at bigint,
    hash text COLLATE "C" NOT NULL,
    next_at bigint NOT NULL,
    read_until bigint NOT NULL
);

CREATE INDEX holds_by_use ON holds (read_until);

CREATE TABLE schedules (
    machine text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    spec text COLLATE "C" NOT NULL,
    next_at bigint NOT NULL,
    hash text COLLATE "C" NOT NULL,
    PRIMARY KEY (machine, name)
);
