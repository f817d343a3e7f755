-- What was pruned, and the mark of a database that a copy is still being written into, as sql/schema/004_moving.sql.

CREATE TABLE prunings (
    number bigint PRIMARY KEY CHECK (number >= 1),
    before bigint NOT NULL,
    payloads bigint NOT NULL CHECK (payloads IN (0, 1)),
    at bigint NOT NULL,
    hash text COLLATE "C" NOT NULL
);

CREATE TABLE pruned (
    task bigint PRIMARY KEY REFERENCES tasks (key),
    version bigint NOT NULL,
    at bigint NOT NULL,
    hash text COLLATE "C" NOT NULL
);

CREATE TABLE unfinished (
    one bigint PRIMARY KEY CHECK (one = 1),
    copy text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    begun_at bigint NOT NULL
);
