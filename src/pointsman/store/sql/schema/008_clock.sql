-- The last time that the store is known to have seen, brought on about once a second, and the uptime of the machine at which that was.

CREATE TABLE clock (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    mark INTEGER NOT NULL,
    uptime INTEGER NOT NULL
);
