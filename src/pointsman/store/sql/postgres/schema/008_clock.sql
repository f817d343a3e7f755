-- What a SQLite file knows of the time, kept when it is copied here and back. The server has a clock of its own: nobody here reads or
-- moves this.

CREATE TABLE clock (
    one bigint PRIMARY KEY CHECK (one = 1),
    mark bigint NOT NULL,
    uptime bigint NOT NULL
);
