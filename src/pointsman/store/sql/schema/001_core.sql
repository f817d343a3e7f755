-- The decision core. Times are µs of UTC; JSON is canonical text; which column is covered, derived or volatile
-- stands in store/columns.py.

CREATE TABLE machines (
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    digest TEXT NOT NULL,
    form TEXT NOT NULL,
    functions TEXT NOT NULL,
    published_at INTEGER NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (name, version)
) WITHOUT ROWID;

CREATE TABLE tasks (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE CHECK (length(id) = 36),
    machine TEXT NOT NULL,
    machine_version INTEGER NOT NULL,
    state TEXT NOT NULL,
    final INTEGER NOT NULL CHECK (final IN (0, 1)),
    version INTEGER NOT NULL CHECK (version >= 1),
    revision INTEGER NOT NULL CHECK (revision >= 1),
    digest TEXT NOT NULL,
    fields TEXT NOT NULL,
    owner TEXT CHECK (length(trim(owner)) > 0),
    owner_root TEXT,
    session TEXT,
    epoch INTEGER NOT NULL CHECK (epoch >= 0),
    priority INTEGER NOT NULL,
    place INTEGER NOT NULL,
    evidence TEXT NOT NULL,
    contributors TEXT NOT NULL,
    decisions TEXT NOT NULL,
    created_by TEXT NOT NULL CHECK (length(trim(created_by)) > 0),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    head TEXT NOT NULL,
    lease_until INTEGER,
    FOREIGN KEY (machine, machine_version) REFERENCES machines (name, version)
);

CREATE INDEX tasks_by_created ON tasks (created_at, id);
CREATE INDEX tasks_in_state_by_created ON tasks (state, final, created_at, id);
CREATE INDEX tasks_in_state_by_updated ON tasks (state, final, updated_at, id);
CREATE INDEX tasks_in_state_by_place ON tasks (state, final, place, id);
CREATE INDEX tasks_owned ON tasks (owner) WHERE final = 0 AND owner IS NOT NULL;
CREATE INDEX tasks_claimable ON tasks (machine, machine_version, state, place, key) WHERE final = 0 AND owner IS NULL;
CREATE INDEX tasks_leased ON tasks (machine, machine_version, state, lease_until) WHERE final = 0 AND lease_until IS NOT NULL;
CREATE INDEX tasks_of_machine ON tasks (machine, machine_version, state, final);

CREATE TABLE entries (
    key INTEGER PRIMARY KEY,
    task INTEGER NOT NULL REFERENCES tasks (key),
    version INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    event TEXT NOT NULL,
    from_state TEXT,
    to_state TEXT NOT NULL,
    by TEXT NOT NULL CHECK (length(trim(by)) > 0),
    session TEXT,
    door TEXT NOT NULL,
    auth TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    payload_digest TEXT NOT NULL,
    request_key TEXT NOT NULL,
    request_digest TEXT NOT NULL,
    format INTEGER NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL,
    UNIQUE (task, version)
);

CREATE TABLE payloads (
    entry INTEGER PRIMARY KEY REFERENCES entries (key),
    nonce TEXT NOT NULL,
    body TEXT NOT NULL
);

CREATE TABLE requests (
    principal TEXT NOT NULL,
    key TEXT NOT NULL CHECK (length(trim(key)) > 0),
    digest TEXT NOT NULL,
    task TEXT NOT NULL,
    version INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (principal, key)
) WITHOUT ROWID;

CREATE TABLE judgements (
    check_name TEXT NOT NULL,
    inputs_digest TEXT NOT NULL,
    task TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pass', 'fail')),
    reason TEXT NOT NULL,
    detail TEXT NOT NULL,
    at INTEGER NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (task, check_name, inputs_digest)
) WITHOUT ROWID;

CREATE TABLE refusals (
    key INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    task TEXT,
    event TEXT NOT NULL,
    by TEXT NOT NULL,
    door TEXT NOT NULL,
    code TEXT NOT NULL,
    detail TEXT NOT NULL
);
