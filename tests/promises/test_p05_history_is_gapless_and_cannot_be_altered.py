"""P5: altering, dropping, swapping or inserting an entry, or any covered or derived column, is found and named."""

import pytest

import support
from databases import STORES
from pointsman import Event, Limit, Machine, Pointsman, Refused, Schedule, State, Tasks, Verdict, check, field, hours, optional, owner
from pointsman.engine.chance import wall_clock
from pointsman.engine.timers import Schedules
from pointsman.store import clock, graph
from pointsman.store.columns import COLUMNS, POSTGRES_COLUMNS, VOLATILE
from pointsman.store.snapshots import EVERY
from promises.copies import Copies, PostgresCopies, SqliteCopies

TAMPERABLE = [(table, column) for table, columns in COLUMNS.items() for column, kind in columns.items() if kind != VOLATILE]


def slow(text: str | None) -> Verdict:
    return Verdict(text == "right", "compared")


class Judged(Machine, name="judged"):
    version = 1
    text: str | None = None
    open = State(initial=True)
    done = State(final=True, outcome="failed")
    right = check(slow)
    nightly = Schedule("0 3 * * *")
    take = Event(open >> open, acquires=True)
    finish = Event(open >> done, by=owner, sets=optional("text"), requires=right)


class Limited(Machine, name="limited"):
    version = 1
    repo: str
    open = State(initial=True)
    work = State(lease=hours(1))
    done = State(final=True, outcome="failed")
    take = Event(open >> work, acquires=True, limits=(Limit("repo", key=field.repo, concurrent=1), Limit("all", per=hours(1), max=9)))
    finish = Event(work >> done, by=owner)


@pytest.fixture(scope="module", params=STORES)
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Copies:
    """A database with every kind of row, closed."""
    copies: Copies
    if request.param == "sqlite":
        copies = SqliteCopies(tmp_path_factory.mktemp("whole"))
    else:
        copies = PostgresCopies(request.getfixturevalue("postgres"))
    with Pointsman(copies.url, [Tasks, Judged, Limited]) as pm:
        pm.add_hook("https://example.org/hook", "webhook", ["approval_needed"], by="olga")
        for _ in range(3):
            task = support.approved(pm)
        support.failed(pm)
        for _ in range(2):
            pm.prune(0, payloads=True)
        long = support.drafting(pm)
        for _ in range(EVERY):
            pm.propose(long.id, "start_draft", by=support.OWNER, epoch=long.epoch)
        pm.propose(task.id, "complete", by=support.OWNER, epoch=task.epoch, idempotency_key="k1")
        judged = pm.create("judged", {}, by="ann")
        judged = pm.claim("judged", by="w", id=judged.id)
        assert judged is not None
        pm.propose(judged.id, "finish", {"text": "right"}, by="w", epoch=judged.epoch)
        for upstream in (task, long):
            pm.create("tasks", {"title": "t", "brief": "b"}, by="ann", blocked_by=[{"task": upstream.id}])
        pm.engine.db.run(lambda tx: graph.mark(tx, long))
        pm.lift(pm.hold({"tag": "gpu"}, by="olga", reason="enough", until=wall_clock() + hours(1)).id, by="olga")
        pm.engine.db.run(lambda tx: clock.move(None, 0, tx))
        Schedules(pm.engine).run_once()
        for repo in ("one", "two"):
            pm.create("limited", {"repo": repo}, by="ann", tags=[repo], needs=["git"])
        _worked_on(pm)
        for key in (None, "bound"):
            pm.create("tasks", {"title": "t", "brief": "b"}, by="ann", dedupe_key="once", idempotency_key=key)
        assert pm.as_of() == len(pm.history(n=1000))
    return copies


def _worked_on(pm: Pointsman) -> None:
    """A task with operations that are over and one that is not, what a replaced owner said of it, and a checkpoint."""
    task = pm.claim("limited", by="w", capabilities=["git"])
    assert task is not None
    for name in ("first", "last"):
        begun = pm.begin(task.id, name, by="w", epoch=task.epoch, kind="keyed", request={"of": name})
        pm.finish(begun.operation.id, "succeeded", 1, by="w", epoch=task.epoch, note="as asked")
    back = pm.begin(task.id, "undo", by="w", epoch=task.epoch, kind="ask", compensates=begun.operation.id)
    pm.checkpoint(task.id, {"page": 1}, by="w", epoch=task.epoch, plan=[{"name": "tidy"}], progress=0.5)
    with pytest.raises(Refused):
        pm.finish(back.operation.id, "failed", 2, by="w", epoch=task.epoch + 1, note="I was there")


def _tampered(whole: Copies, *statements: str) -> list[str]:
    """What verify says after raw SQL was run on a copy. No machine is served: verification needs only the database."""
    with Pointsman(whole.changed(statements), [], create=False) as pm:
        report = pm.verify()
    assert report.ok == (not report.faults)
    return [fault.what for fault in report.faults]


def test_an_untouched_database_verifies(whole: Copies) -> None:
    assert _tampered(whole) == []


def test_every_column_of_every_table_is_declared(whole: Copies) -> None:
    declared = {table: set(columns) for table, columns in COLUMNS.items()}
    if isinstance(whole, PostgresCopies):
        declared |= {table: set(columns) for table, columns in POSTGRES_COLUMNS.items()}
    assert {table: set(columns) for table, columns in whole.tables().items()} == declared


@pytest.mark.parametrize(("table", "column"), TAMPERABLE)
def test_an_altered_column_is_found(whole: Copies, table: str, column: str) -> None:
    keys = whole.key_of(table)
    row = whole.ask(f"SELECT {', '.join(keys)} FROM {table} ORDER BY 1 DESC LIMIT 1")[0]
    where = " AND ".join(f"{key} = {value!r}" for key, value in zip(keys, row, strict=True))
    changed = f"coalesce({column}, 0) + 1000" if whole.is_number(table, column) else f"coalesce({column}, '') || ' '"
    assert _tampered(whole, f"UPDATE {table} SET {column} = {changed} WHERE {where}")


@pytest.mark.parametrize("column", COLUMNS["requests"])
def test_an_altered_key_of_what_was_there_already_is_found(whole: Copies, column: str) -> None:
    changed = f"{column} + 1000" if whole.is_number("requests", column) else f"{column} || ' '"
    assert _tampered(whole, f"UPDATE requests SET {column} = {changed} WHERE key = 'bound'")


def test_a_key_that_passes_for_one_of_what_was_there_is_found(whole: Copies) -> None:
    for change in ("known = NULL", "hash = NULL", "known = NULL, hash = NULL"):
        assert _tampered(whole, f"UPDATE requests SET {change} WHERE key = 'bound'"), change
    assert _tampered(whole, "UPDATE requests SET known = '[]' WHERE key = 'k1'")


@pytest.mark.parametrize("change", ["owner = NULL", "session = 's'", "evidence = '{}'", "fields = '{}'"])
def test_a_column_set_to_null_or_empty_is_found(whole: Copies, change: str) -> None:
    faults = _tampered(whole, f"UPDATE tasks SET {change} WHERE key = 1")
    assert any("live row" in fault for fault in faults)


def _swapped(table: str, column: str, where: str) -> list[str]:
    """Exchange the values 2 and 3 of a unique column."""
    return [f"UPDATE {table} SET {column} = -{column} WHERE {where}", f"UPDATE {table} SET {column} = 5 + {column} WHERE {where}"]


LAST = "(SELECT max(key) FROM entries WHERE task = 1)"


@pytest.mark.parametrize(
    ("statements", "named"),
    [
        (["DELETE FROM payloads WHERE entry = 2", "DELETE FROM entries WHERE key = 2"], "missing"),
        (["DELETE FROM payloads WHERE entry = 2"], "payload is gone"),
        ([f"DELETE FROM entries WHERE key = {LAST}"], "live row"),
        (_swapped("entries", "version", "key IN (2, 3)"), "not follow"),
        (_swapped("payloads", "entry", "entry IN (2, 3, -2, -3)"), "payload was altered"),
        (["DELETE FROM tasks WHERE key = 1"], "stray entry"),
        (["DELETE FROM entries WHERE task = 1"], "without history"),
    ],
)
def test_a_dropped_swapped_or_inserted_entry_is_found(whole: Copies, statements: list[str], named: str) -> None:
    assert any(named in fault for fault in _tampered(whole, *statements))


def test_an_inserted_entry_is_found(whole: Copies) -> None:
    names = [name for name in whole.tables()["entries"] if name != "key"]
    copied = ", ".join("version + 1" if name == "version" else name for name in names)
    assert _tampered(whole, f"INSERT INTO entries ({', '.join(names)}) SELECT {copied} FROM entries WHERE key = {LAST}")


DELETED_UNSEEN = {
    "judgements": "history does not say that a check was asked",
    "proposals": "history does not say that somebody waited",
    "holds": "history says only what was done",
    "schedules": "it would begin anew",
    "testimonies": "history does not say what a replaced owner said",
    "checkpoints": "it is no entry: an owner's own word",
    "limit_uses": "it goes when its window or its owner has gone",
    "refusals": "volatile",
    "unfinished": "volatile",
    "clock": "volatile",
    "settling": "volatile; whoever then waits in vain is found",
}


@pytest.mark.parametrize("table", COLUMNS)
def test_a_deleted_row_is_found_where_history_implies_it(whole: Copies, table: str) -> None:
    key = whole.key_of(table)[0]
    faults = _tampered(whole, f"DELETE FROM {table} WHERE {key} = (SELECT min({key}) FROM {table})")
    assert bool(faults) == (table not in DELETED_UNSEEN)


def test_a_dropped_inserted_or_older_operation_is_found_and_named(whole: Copies) -> None:
    first, last = (whole.ask(f"SELECT {end}(id) FROM operations")[0][0] for end in ("min", "max"))
    names = ", ".join(whole.tables()["operations"])
    copied = names.replace("id,", "'01890000-0000-7000-8000-000000000000',", 1).replace(" name", " name || '!'", 1)
    for statement, named in (
        (f"DELETE FROM operations WHERE id = '{first}'", first),
        (f"INSERT INTO operations ({names}) SELECT {copied} FROM operations WHERE id = '{first}'", "01890000-0000-7000-8000-000000000000"),
        (f"UPDATE operations SET status = 'not_done' WHERE id = '{last}'", last),
        (f"UPDATE operations SET result = 'true' WHERE id = '{first}'", first),
    ):
        assert any(f"the operation {named}" in fault for fault in _tampered(whole, statement)), statement


def test_an_operation_of_a_pruned_task_is_vouched_for(whole: Copies) -> None:
    url = whole.changed([])
    with Pointsman(url, [Tasks, Judged, Limited]) as pm:
        task = support.drafting(pm)
        begun = pm.begin(task.id, "load", by=support.OWNER, epoch=task.epoch, kind="keyed").operation
        pm.finish(begun.id, "succeeded", by=support.OWNER, epoch=task.epoch)
        pm.propose(task.id, "fail", by=support.OWNER, epoch=task.epoch)
        assert pm.prune(0, payloads=True).tasks
        assert pm.verify().ok
    whole.alter(url, f"DELETE FROM operations WHERE id = '{begun.id}'")
    with Pointsman(url, [], create=False) as pm:
        assert [fault.task for fault in pm.verify().faults] == [task.id]


def test_an_entry_slipped_in_behind_the_feed_is_found(whole: Copies) -> None:
    """With a fitting hash, payload and live row, and with a key that the feed has passed."""
    url = whole.changed([])
    with Pointsman(url, [Tasks, Judged, Limited]) as pm:
        task = pm.list(limit=1)[0]
        head = pm.head()
        record = pm.propose(task.id, "fail", by="x")
        assert pm.verify(head).ok
    whole.alter(
        url,
        "DELETE FROM feed WHERE entry = (SELECT max(key) FROM entries)",
        "UPDATE payloads SET entry = 0 WHERE entry = (SELECT max(key) FROM entries)",
        "UPDATE entries SET key = 0 WHERE key = (SELECT max(key) FROM entries)",
    )
    with Pointsman(url, [], create=False) as pm:
        assert record.version == task.version + 1
        assert [fault.what for fault in pm.verify(head).faults] == ["an entry stands behind the feed without a number (key 0)"]


def test_an_entry_that_would_never_be_numbered_is_found(request: pytest.FixtureRequest) -> None:
    """On PostgreSQL entries wait for their number in a table of their own."""
    copies = PostgresCopies(request.getfixturevalue("postgres"))
    with Pointsman(copies.url) as pm:
        support.create(pm)
    assert _tampered(copies) == []
    assert _tampered(copies, "DELETE FROM unnumbered") == ["an entry stands behind the feed without a number (key 1)"]


def test_the_first_bad_entry_is_named(whole: Copies) -> None:
    task, version = whole.ask("SELECT t.id, e.version FROM entries e JOIN tasks t ON t.key = e.task WHERE e.key = 3")[0]
    with Pointsman(whole.changed(["UPDATE entries SET by = 'mallory' WHERE key >= 3"]), [], create=False) as pm:
        first = next(fault for fault in pm.verify().faults if fault.what == "a covered column was altered")
    assert (first.task, first.version) == (task, version)
