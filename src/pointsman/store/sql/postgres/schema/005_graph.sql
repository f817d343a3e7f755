-- Tasks that wait for others: which ones, and whose end is still to be told to those who wait for it.
-- `dependencies` is the index over the covered `blocked_by`: `settled` is 1 once the upstream no longer keeps the dependent
-- waiting. A row of `settling` says that a task ended or was parked, and that what this means for others is not done yet;
-- `times` rises with every reason to look again.

ALTER TABLE tasks ADD COLUMN joining text COLLATE "C";
CREATE INDEX tasks_of_parent ON tasks (parent, final, id) WHERE parent IS NOT NULL;

CREATE TABLE dependencies (
    dependent text COLLATE "C" NOT NULL,
    upstream text COLLATE "C" NOT NULL,
    on_failure text COLLATE "C" NOT NULL CHECK (on_failure IN ('block', 'cancel', 'continue')),
    settled bigint NOT NULL CHECK (settled IN (0, 1)),
    PRIMARY KEY (dependent, upstream)
);

CREATE INDEX dependencies_open ON dependencies (upstream, dependent) WHERE settled = 0;

CREATE TABLE settling (
    task text COLLATE "C" NOT NULL PRIMARY KEY,
    at bigint NOT NULL,
    cascade bigint NOT NULL CHECK (cascade IN (0, 1)),
    times bigint NOT NULL
);

CREATE INDEX settling_by_time ON settling (at, task);
