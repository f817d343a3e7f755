-- Who may take what, in which order, and how much at a time. A lane is all that decides whom a task may go to: what its worker must
-- be able to do, what it is called, and which limits its claim uses. A use is what an accepted event took of a limit: for a while,
-- until `ends`, or, where that is null, for as long as the task has its owner.

CREATE TABLE lanes (
    key INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    text TEXT NOT NULL
);
INSERT INTO lanes (key, digest, text)
VALUES (1, '04d8c1db9d27f7f6e77136359687b443ab1caee3f567b3fcd53aab37276b7eb5', '{"limits":[],"needs":[],"tags":[]}');

ALTER TABLE tasks ADD COLUMN lane INTEGER NOT NULL DEFAULT 1;

DROP INDEX tasks_ready;
CREATE INDEX tasks_ready ON tasks (machine, machine_version, state, lane, place, key) WHERE ready > 0;

CREATE TABLE limit_uses (
    task TEXT NOT NULL,
    version INTEGER NOT NULL,
    name TEXT NOT NULL,
    subject TEXT NOT NULL,
    amount INTEGER NOT NULL,
    at INTEGER NOT NULL,
    ends INTEGER,
    PRIMARY KEY (task, version, name)
) WITHOUT ROWID;

CREATE INDEX limit_uses_in_window ON limit_uses (name, subject, at, amount);
CREATE INDEX limit_uses_ending ON limit_uses (ends) WHERE ends IS NOT NULL;
