-- Drawn once for each table of columns.py: the marks stand for its name, its columns, its key and the values it goes on from.

-- name: first_rows :many
SELECT /*columns*/
FROM /*table*/
ORDER BY /*key*/
LIMIT :limit;

-- name: rows_after :many
SELECT /*columns*/
FROM /*table*/
WHERE (/*key*/) > (/*after*/)
ORDER BY /*key*/
LIMIT :limit;

-- name: put_rows@sqlite :none
-- A page of rows, a JSON array of objects.
INSERT INTO /*table*/ (/*columns*/)
SELECT /*members*/
FROM json_each(:rows);

-- name: put_rows@postgres :none
INSERT INTO /*table*/ (/*columns*/)
SELECT /*columns*/
FROM json_populate_recordset(CAST(NULL AS /*table*/), CAST(:rows AS json));

-- name: holds_rows :one
SELECT EXISTS (SELECT 1 FROM /*table*/) AS found;

-- name: clear_rows@sqlite :none
DELETE FROM /*table*/;

-- name: clear_rows@postgres :none
-- Many rows at once, and those of tables that refer to it.
TRUNCATE /*table*/ CASCADE;

-- name: go_on_from@sqlite :none
-- A new row gets the key after the highest.
SELECT 0 /*table*/;

-- name: go_on_from@postgres :none
-- New rows get keys beyond those that were brought.
SELECT setval(pg_get_serial_sequence('/*table*/', 'key'), (SELECT coalesce(max(key), 0) + 1 FROM /*table*/), false);
