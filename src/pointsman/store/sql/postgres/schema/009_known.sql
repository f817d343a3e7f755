-- An idempotency key whose answer was there already, under its dedupe_key: no entry of history keeps it. `known` names the tasks that
-- were answered, each with its version, as JSON, and `hash` vouches for the whole row. Both are null where a step answered.

ALTER TABLE requests ADD COLUMN known text COLLATE "C";
ALTER TABLE requests ADD COLUMN hash text COLLATE "C";
