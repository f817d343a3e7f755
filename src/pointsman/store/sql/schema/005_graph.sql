-- Tasks that wait for others: which ones, and whose end is still to be told to those who wait for it.
-- `dependencies` is the index over the covered `blocked_by`: `settled` is 1 once the upstream no longer keeps the dependent
-- waiting. A row of `settling` says that a task ended or was parked, and that what this means for others is not done yet;
-- `times` rises with every reason to look again.

ALTER TABLE tasks ADD COLUMN joining TEXT;
CREATE INDEX tasks_of_parent ON tasks (parent, final, id) WHERE parent IS NOT NULL;

CREATE TABLE dependencies (
    dependent TEXT NOT NULL,
    upstream TEXT NOT NULL,
    on_failure TEXT NOT NULL CHECK (on_failure IN ('block', 'cancel', 'continue')),
    settled INTEGER NOT NULL CHECK (settled IN (0, 1)),
    PRIMARY KEY (dependent, upstream)
) WITHOUT ROWID;

CREATE INDEX dependencies_open ON dependencies (upstream, dependent) WHERE settled = 0;

CREATE TABLE settling (
    task TEXT NOT NULL PRIMARY KEY,
    at INTEGER NOT NULL,
    cascade INTEGER NOT NULL CHECK (cascade IN (0, 1)),
    times INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX settling_by_time ON settling (at, task);
