-- As sql/schema/011_line.sql.

CREATE INDEX tasks_in_line ON tasks (machine, machine_version, place, key) WHERE ready = 1;
