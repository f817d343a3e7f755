-- The line of a machine's version over all its lanes: who claims looks at its beginning first, however many lanes there are.
-- `ready = 1` says what `ready > 0` says elsewhere: so this index never stands in for that of a lane.

CREATE INDEX tasks_in_line ON tasks (machine, machine_version, place, key) WHERE ready = 1;
