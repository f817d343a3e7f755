"""Units that share one COMMIT: what fails is taken back alone, and nobody is answered early."""

import random
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import pytest

from pointsman.errors import StoreError
from pointsman.store.database import Tx
from pointsman.store.sqlite import Sqlite
from store.notes import Gate, add, open_notes, texts, together


def fails_after_writing(tx: Tx) -> None:
    tx("put_note", id=99, text="half")
    raise ZeroDivisionError


def rolls_everything_back(tx: Tx) -> None:
    tx("add_note", text="lost", parent=None)
    tx("put_or_roll_back", id=1, text="taken")


class Log:
    """What the probe saw, and when answers came, in one order."""

    def __init__(self):
        self.seen: list[str] = []

    def __call__(self, point: str) -> None:
        self.seen.append(point)

    def watch(self, name: str) -> Callable[[object], None]:
        return lambda _: self.seen.append(f"answered:{name}")


def test_one_unit_of_many_is_taken_back_alone(file_db: Sqlite):
    first, bad, last = together(file_db, add("first"), fails_after_writing, add("last"))
    assert (first.result(), last.result()) == (1, 2)
    with pytest.raises(ZeroDivisionError):
        bad.result()
    assert file_db.read(texts) == ["first", "last"]


def test_a_unit_sees_what_its_neighbour_wrote_before_it(file_db: Sqlite):
    _, seen = together(file_db, add("first"), texts)
    assert seen.result() == ["first"]


def test_answers_and_errors_come_only_after_the_one_commit_of_their_group(tmp_path: Path):
    log = Log()
    db = open_notes(tmp_path, probe=log)
    with Gate(db):
        for name, unit in {"good": add("a"), "bad": fails_after_writing, "reads": texts}.items():
            db.submit(unit).add_done_callback(log.watch(name))
        log.seen.clear()
    db.close()
    marks = [seen for seen in log.seen if seen in ("unit.begun", "commit.before", "commit.after") or seen.startswith("answered")]
    held_up = ["commit.before", "commit.after"]
    assert marks == [*held_up, *["unit.begun"] * 3, *held_up, "answered:good", "answered:bad", "answered:reads"]


def test_a_unit_that_fails_alone_is_rolled_back_without_a_commit(tmp_path: Path):
    log = Log()
    db = open_notes(tmp_path, probe=log)
    with pytest.raises(ZeroDivisionError):
        db.run(fails_after_writing)
    assert "commit.before" not in log.seen
    assert db.read(texts) == []
    db.close()


def test_after_a_lost_transaction_every_unit_runs_again_alone(file_db: Sqlite):
    file_db.run(add("taken"))
    runs: list[str] = []

    def counted(name: str) -> Callable[[Tx], Any]:
        return lambda tx: (runs.append(name), add(name)(tx))[1]

    before, lost, after = together(file_db, counted("before"), rolls_everything_back, counted("after"))
    assert runs == ["before", "before", "after"]
    assert (before.result(), after.result()) == (2, 3)
    assert isinstance(lost.exception(), apsw.ConstraintError)
    assert file_db.read(texts) == ["taken", "before", "after"]


def test_a_unit_that_hides_the_loss_of_its_transaction_writes_nothing_more(file_db: Sqlite):
    file_db.run(add("taken"))

    def hides_it(tx: Tx) -> str:
        try:
            rolls_everything_back(tx)
        except apsw.ConstraintError:
            with pytest.raises(RuntimeError, match="has ended"):
                tx("add_note", text="outside any transaction", parent=None)
        return "all is well"

    before, hidden, after = together(file_db, add("before"), hides_it, add("after"))
    assert (before.result(), after.result()) == (2, 3)
    with pytest.raises(StoreError, match="rolled the transaction back") as told:
        hidden.result()
    assert told.value.outcome == "not_done"
    with pytest.raises(StoreError, match="rolled the transaction back"):
        file_db.run(hides_it)
    assert file_db.read(texts) == ["taken", "before", "after"]


def test_a_commit_that_the_schema_refuses_concerns_only_the_unit_at_fault(file_db: Sqlite):
    before, orphan, after = together(file_db, add("before"), add("orphan", parent=1234), add("after"))
    assert (before.result(), after.result()) == (1, 2)
    assert isinstance(orphan.exception(), apsw.ConstraintError)
    assert file_db.read(texts) == ["before", "after"]


def test_a_waiting_thread_and_a_future_may_share_a_group(file_db: Sqlite):
    answers: list[int] = []
    thread = threading.Thread(target=lambda: answers.append(file_db.run(add("waits"))))
    with Gate(file_db):
        thread.start()
        promised = [file_db.submit(add(str(n))) for n in range(200)]
    thread.join(10)
    assert sorted([*answers, *(future.result(10) for future in promised)]) == list(range(1, 202))


def test_an_interrupted_caller_leaves_no_transaction_behind(file_db: Sqlite):
    def interrupted(tx: Tx) -> None:
        tx("put_note", id=1, text="a")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        file_db.run(interrupted)
    with pytest.raises(KeyboardInterrupt):
        file_db.submit(interrupted).result(10)
    assert file_db.run(texts) == []


def test_whatever_is_mixed_exactly_the_successes_are_there(file_db: Sqlite):
    """Good units, failing ones, ones that lose the whole transaction, and cancelled ones, from many threads at once."""
    file_db.run(add("taken"))
    kinds = (add("kept"), fails_after_writing, rolls_everything_back, add("orphan", parent=10_000), texts)
    succeeded: list[int] = []

    def work(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(60):
            units = chance.choices(kinds, weights=(6, 2, 1, 1, 2), k=chance.randint(1, 4))
            futures = [file_db.submit(unit) for unit in units[1:]]
            if chance.random() < 0.2:
                futures = [future for future in futures if not future.cancel()]
            for wait in (partial(file_db.run, units[0]), *(future.result for future in futures)):
                try:
                    answer = wait()
                except (ZeroDivisionError, apsw.ConstraintError):
                    continue
                if isinstance(answer, int):
                    succeeded.append(answer)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    rows = file_db.read(lambda tx: tx("numbered"))
    assert [text for _, text in rows] == ["taken", *["kept"] * (len(rows) - 1)]
    assert sorted(succeeded) == [number for number, _ in rows[1:]]
