"""Which PostgreSQL databases are opened, what the others are told, and what is said of one that is."""

import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import psycopg
import pytest

import databases
from databases import PostgresServer
from pointsman.errors import Refused, StoreError
from pointsman.store.columns import COLUMNS, POSTGRES_COLUMNS
from pointsman.store.connect import SERVER_SQL, SQL, connect
from pointsman.store.migrate import Migration, migrations
from pointsman.store.postgres_server import Patience, locate, unfit
from pointsman.store.statements import load
from pointsman.testing import FakeClock
from store.notes import POSTGRES_SCHEMA, add, child, open_postgres_notes, texts

SECRET = "hunter2"
LATER = Migration(2, "002_later.sql", "ALTER TABLE notes ADD COLUMN colour text; CREATE TABLE later (a bigint PRIMARY KEY);")
IN = "SET search_path = pointsman; "


@pytest.fixture
def database(postgres: PostgresServer) -> str:
    return postgres.create()


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    """One whose settings a test may spoil."""
    with databases.packaged() as conninfo:
        yield PostgresServer(conninfo, [])


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:hunter2@db.example:5433/work", "postgresql://ann@db.example:5433/work"),
        ("postgres://ann:hunter2@db.example/work?sslmode=require", "postgresql://ann@db.example/work"),
        ("postgresql:///work?host=/run/pg&user=ann&password=hunter2", "postgresql://ann@/work?host=/run/pg"),
        ("postgresql://a,b:5433/work?password=hunter2", "postgresql:///work?host=a,b&port=,5433"),
        ("postgresql://ann%40home:hunter2@h/w", "postgresql://ann%40home@h/w"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert locate(url, Patience(), {}).url == shown


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:hun@ter2@db.example/work",
        "postgresql://ann:hunter2/x@db.example/work",
        "postgresql://ann:hunter2%zz@db.example/work",
        "postgresql://ann:hunter2@db.example:x/work",
        "postgresql://db.example/work?nonsense=hunter2",
        "postgresql://[hunter2/work",
    ],
)
def test_a_url_that_cannot_be_read_is_not_repeated(url: str) -> None:
    with pytest.raises(StoreError, match="the URL of the database cannot be read") as told:
        connect(url, clock=FakeClock())
    assert not any(part in repr((told.value, told.value.__cause__, told.value.refusal)) for part in (SECRET, "ter2", "hun@"))


def test_no_error_of_a_connection_holds_the_password(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as told:
        connect(f"postgresql://ann:{SECRET}@127.0.0.1:1/work", clock=FakeClock())
    assert SECRET not in repr((told.value, told.value.__cause__, told.value.refusal))


def test_a_database_that_does_not_exist_is_not_made(postgres: PostgresServer) -> None:
    with pytest.raises(StoreError, match="does not exist") as told:
        connect(postgres.url("pointsman_test_nowhere"), clock=FakeClock())
    assert told.value.code == "store_unavailable"


def test_without_create_nothing_is_made_in_an_empty_database(postgres: PostgresServer, database: str) -> None:
    with pytest.raises(StoreError, match="it holds nothing of Pointsman"):
        connect(database, clock=FakeClock(), create=False)
    assert postgres.execute("SELECT 1 FROM pg_namespace WHERE nspname = 'pointsman'", database) == []
    connect(database, clock=FakeClock()).close()
    connect(database, clock=FakeClock(), create=False).close()


def test_a_schema_of_that_name_that_is_not_ours_is_left_alone(postgres: PostgresServer, database: str) -> None:
    postgres.execute("CREATE SCHEMA pointsman CREATE TABLE theirs (a int)", database)
    with pytest.raises(StoreError, match="belongs to another program"):
        connect(database, clock=FakeClock())
    assert postgres.execute("SELECT relname FROM pg_class WHERE relnamespace = 'pointsman'::regnamespace", database) == [("theirs",)]


def test_an_empty_schema_made_by_somebody_else_is_used(postgres: PostgresServer, database: str) -> None:
    postgres.execute("CREATE SCHEMA pointsman", database)
    connect(database, clock=FakeClock()).close()


def test_tables_of_other_programs_beside_ours_are_no_matter(postgres: PostgresServer, database: str) -> None:
    postgres.execute("CREATE TABLE tasks (theirs int)", database)
    db = connect(database, clock=FakeClock())
    assert db.read(lambda tx: tx("list_machines")) == []
    db.close()


def test_a_newer_schema_is_refused(postgres: PostgresServer, database: str) -> None:
    connect(database, clock=FakeClock()).close()
    postgres.execute("INSERT INTO pointsman.steps VALUES (99, 'from the future')", database)
    with pytest.raises(StoreError, match=f"its schema is number 99, newer than {len(migrations(SERVER_SQL / 'schema'))}"):
        connect(database, clock=FakeClock())


def test_a_database_whose_commits_do_not_last_is_refused(postgres: PostgresServer, database: str) -> None:
    name = psycopg.conninfo.conninfo_to_dict(database)["dbname"]
    postgres.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    with pytest.raises(StoreError, match="synchronous_commit is off"):
        connect(database, clock=FakeClock())


def test_a_setting_that_changes_later_is_found_by_the_next_connection(postgres: PostgresServer, database: str, tmp_path: Path) -> None:
    db = open_postgres_notes(database, tmp_path)
    assert db.run(texts) == []
    postgres.execute(f"ALTER DATABASE {psycopg.conninfo.conninfo_to_dict(database)['dbname']} SET synchronous_commit = off")
    postgres.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()", database
    )
    with pytest.raises(StoreError, match="synchronous_commit is off"):
        db.run(texts)
    db.close()


def test_a_role_needs_to_make_the_schema_or_to_own_it(postgres: PostgresServer, database: str) -> None:
    role = f"pointsman_test_{psycopg.conninfo.conninfo_to_dict(database)['dbname']}"
    postgres.execute(f"CREATE ROLE {role} LOGIN")
    theirs = databases.spelled(database, user=role)
    with pytest.raises(StoreError, match="access was denied"):
        connect(theirs, clock=FakeClock())
    postgres.execute(f"CREATE SCHEMA pointsman AUTHORIZATION {role}", database)
    connect(theirs, clock=FakeClock()).close()
    postgres.execute(f"DROP OWNED BY {role}", database)
    postgres.execute(f"DROP ROLE {role}")


def test_what_a_url_leaves_out_comes_from_libpqs_variables(
    postgres: PostgresServer, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in psycopg.conninfo.conninfo_to_dict(database).items():
        monkeypatch.setenv("PGDATABASE" if name == "dbname" else f"PG{name.upper()}", str(value))
    connect("postgresql://", clock=FakeClock()).close()
    assert postgres.execute("SELECT 1 FROM pg_namespace WHERE nspname = 'pointsman'", database) == [(1,)]


def test_without_its_driver_whoever_asks_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for name in [name for name in sys.modules if name.startswith("pointsman.store.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(StoreError, match=r"pip install 'pointsman\[postgres\]'"):
        connect("postgresql://host/work", clock=FakeClock())


def test_a_database_of_another_encoding_is_refused(postgres: PostgresServer) -> None:
    postgres.execute("CREATE DATABASE pointsman_test_ascii TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE 'C'")
    postgres.made.append("pointsman_test_ascii")
    with pytest.raises(StoreError, match="its encoding is SQL_ASCII"):
        connect(postgres.url("pointsman_test_ascii"), clock=FakeClock())


def test_a_server_that_does_not_flush_is_refused(own_server: PostgresServer) -> None:
    database = own_server.create()
    own_server.execute("ALTER SYSTEM SET fsync = off")
    own_server.execute("SELECT pg_reload_conf()")
    _until_set(own_server, "fsync", "off")
    with pytest.raises(StoreError, match="its fsync is off"):
        connect(database, clock=FakeClock())
    own_server.execute("ALTER SYSTEM RESET fsync")
    own_server.execute("SELECT pg_reload_conf()")
    _until_set(own_server, "fsync", "on")


def _until_set(server: PostgresServer, name: str, value: str) -> None:
    for _ in range(500):
        if server.execute(f"SHOW {name}") == [(value,)]:
            return
        Event().wait(0.02)
    raise AssertionError(f"{name} did not become {value}")


@pytest.mark.parametrize(
    ("server", "why"),
    [
        (("139999", "on", "on", "UTF8"), "older than 14"),
        (("140000", "off", "on", "UTF8"), "fsync"),
        (("180000", "on", "off", "UTF8"), "synchronous_commit"),
        (("180000", "on", "on", "LATIN1"), "encoding"),
    ],
)
def test_what_makes_a_server_unfit(server: tuple[str, str, str, str], why: str) -> None:
    assert why in (unfit(*server) or "")


@pytest.mark.parametrize("commits", ["on", "local", "remote_write", "remote_apply"])
def test_what_makes_it_fit(commits: str) -> None:
    assert unfit("140000", "on", commits, "UTF8") is None


def test_a_commit_that_stopped_waiting_for_its_standby_is_unknown(own_server: PostgresServer, tmp_path: Path) -> None:
    """PostgreSQL says COMMIT and a warning: it is done here, and may be lost with this server."""
    database = own_server.create()
    db = open_postgres_notes(database, tmp_path)
    own_server.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    own_server.execute("SELECT pg_reload_conf()")
    _until_set(own_server, "synchronous_standby_names", "nobody")
    told = [_cancelled(own_server, db.submit(add("here"))), _cancelled(own_server, db.submit(texts))]
    assert [(error.code, error.outcome) for error in told] == [("store_unavailable", "unknown")] * 2, "a reader waits too, once in doubt"
    own_server.execute("ALTER SYSTEM RESET synchronous_standby_names")
    own_server.execute("SELECT pg_reload_conf()")
    _until_set(own_server, "synchronous_standby_names", "")
    assert db.run(texts) == ["here"]
    db.close()


def _cancelled(server: PostgresServer, future: object) -> StoreError:
    """What a unit comes to whose wait for a standby an operator ended."""
    cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    while not future.done():  # type: ignore[attr-defined]
        server.execute(cancel)
        Event().wait(0.02)
    error = future.exception()  # type: ignore[attr-defined]
    assert isinstance(error, StoreError)
    return error


def test_an_older_database_is_brought_forward_with_its_rows(database: str, tmp_path: Path) -> None:
    old = open_postgres_notes(database, tmp_path)
    old.run(add("kept"))
    old.close()
    new = open_postgres_notes(database, tmp_path, schema=(*POSTGRES_SCHEMA, LATER), create=False)
    assert new.read(texts) == ["kept"]
    new.close()
    with pytest.raises(StoreError, match="newer than 1"):
        open_postgres_notes(database, tmp_path)


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("CREATE TABLE half (a int); CREATE TABLE notes (a int);", "already exists"),
        ("CREATE TABLE half (a int); UPDATE notes SET parent = 77;", "foreign key"),
        ("CREATE TABLE half (a int); nonsense;", "syntax error"),
    ],
)
def test_a_step_that_fails_leaves_the_old_database_usable(database: str, tmp_path: Path, sql: str, why: str) -> None:
    old = open_postgres_notes(database, tmp_path)
    old.run(add("kept"))
    old.close()
    with pytest.raises(StoreError, match=f"(?s)002_bad.sql.*{why}|{why}"):
        open_postgres_notes(database, tmp_path, schema=(*POSTGRES_SCHEMA, Migration(2, "002_bad.sql", sql)))
    again = open_postgres_notes(database, tmp_path)
    assert again.read(texts) == ["kept"]
    again.close()


START = """
import sys, pathlib
from store.notes import add, open_postgres_notes
db = open_postgres_notes(sys.argv[1], pathlib.Path(sys.argv[2]))
print(db.run(add("started")))
db.close()
"""


def test_several_processes_may_start_at_once_on_an_empty_database(database: str, tmp_path: Path) -> None:
    starts = [child(START, database, tmp_path) for _ in range(5)]
    ends = [start.communicate(timeout=60) for start in starts]
    assert [errors for _, errors in ends] == [""] * 5
    assert sorted(int(number) for number, _ in ends) == [1, 2, 3, 4, 5]


def test_a_sound_database_has_no_faults_and_every_row_is_read(database: str) -> None:
    db = connect(database, clock=FakeClock())
    assert db.check() == []
    db.close()
    read = load(SERVER_SQL, "postgres")["read_every_row"].sql
    assert {line.split(" FROM ")[1].split(" ")[0] for line in read.splitlines() if " FROM " in line} == {*COLUMNS, *POSTGRES_COLUMNS}


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'tasks_by_created'::regclass",
            "index tasks_by_created is invalid: rebuild it",
        ),
        ("ALTER TABLE tasks ADD CONSTRAINT odd CHECK (version < 5) NOT VALID", "constraint odd of tasks was never validated"),
        ("DROP TABLE unnumbered", 'relation "unnumbered" does not exist'),
    ],
)
def test_what_postgresql_does_not_trust_is_a_fault(postgres: PostgresServer, database: str, spoil: str, told: str) -> None:
    db = connect(database, clock=FakeClock())
    with psycopg.connect(database, options="-c search_path=pointsman") as raw:
        raw.execute(spoil.encode())
    assert db.check() == [told]
    db.close()


def test_a_copy_is_left_to_postgresqls_own_tools(database: str, tmp_path: Path) -> None:
    db = connect(database, clock=FakeClock())
    with pytest.raises(Refused, match="pg_dump") as told:
        db.backup(str(tmp_path / "copy"), replace=False)
    assert told.value.code == "invalid"
    assert list(tmp_path.iterdir()) == []
    db.close()


def test_the_two_schemas_are_kept_in_step(database: str) -> None:
    """The same numbered steps, and the same tables and columns, as store/columns.py declares them for both."""
    assert [step.name for step in migrations(SERVER_SQL / "schema")] == [step.name for step in migrations(SQL / "schema")]
    connect(database, clock=FakeClock()).close()
    with psycopg.connect(database) as raw:
        rows = raw.execute("SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'pointsman'").fetchall()
        loose = raw.execute(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'pointsman' "
            "AND (data_type NOT IN ('text', 'bigint') OR (data_type = 'text' AND collation_name IS DISTINCT FROM 'C'))"
        ).fetchall()
    declared = {(table, column) for tables in (COLUMNS, POSTGRES_COLUMNS) for table, columns in tables.items() for column in columns}
    assert set(rows) == declared
    assert loose == [], "text is compared bytewise, and every number has 64 bits"
