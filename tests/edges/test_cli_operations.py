"""`task resume`, what `task cancel` says had happened, and the effects that `task show` and the report name."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from edges import ledger_world
from edges.cli import Cli
from edges.ledger_world import Refunds
from pointsman import Pointsman, Task

DB = "sqlite:///pointsman.db"


@pytest.fixture
def pm(cli: Cli, tmp_path: Path) -> Iterator[Pointsman]:
    """A board of refunds in the command's folder, which its work file serves."""
    text = Path(ledger_world.__file__).read_text()
    (tmp_path / "work.py").write_text(f"{text}\n\nmachines = [Refunds]\n")
    (tmp_path / "pointsman.toml").write_text('work = "work.py"\n')
    with Pointsman(DB, [Refunds]) as opened:
        yield opened
        assert opened.verify().ok


@pytest.fixture
def task(pm: Pointsman) -> Task:
    made = pm.create("refunds", {"order": "A-1", "amount": 12}, by="ann")
    taken = pm.claim("refunds", by="bob", id=made.id)
    assert taken is not None
    judged = pm.propose(taken.id, "submit", {"why": "damaged"}, by="bob", epoch=taken.epoch)
    return pm.propose(taken.id, "approve", by="rita", digest=judged.digest)


@pytest.fixture
def at_work(pm: Pointsman, task: Task) -> Task:
    """With something finished, something under way, something that may be tried again, and a checkpoint."""
    load = pm.begin(task.id, "load", by="bob", epoch=task.epoch, kind="repeatable").operation
    pm.finish(load.id, "succeeded", {"lines": 2}, by="bob", epoch=task.epoch)
    tried = pm.begin(task.id, "notify", by="bob", epoch=task.epoch, kind="keyed").operation
    pm.finish(tried.id, "not_done", by="bob", epoch=task.epoch)
    pm.begin(task.id, "refund", by="bob", epoch=task.epoch, effect="refund")
    pm.checkpoint(task.id, {"at": "paying"}, by="bob", epoch=task.epoch, plan=[{"name": "archive"}])
    return pm.get(task.id)


def test_resume_in_words(cli: Cli, at_work: Task) -> None:
    said = cli("task", "resume", at_work.id, "--as", "bob").out.splitlines()
    assert said[0] == f"task {at_work.id} is approved, version {at_work.version}, epoch {at_work.epoch}"
    assert said[1] == "open to you: complete, drop"
    assert said[2].startswith("succeeded: load (operation ")
    assert said[2].endswith('): {"lines":2}')
    assert said[3].startswith("under way, by this epoch: refund (operation ")
    assert said[3].endswith('): {"amount":12,"order":"A-1"}')
    assert said[4:7] == [
        "to be done: notify, keyed (not done)",
        "to be done: mail, ask (declared)",
        "to be done: archive (planned)",
    ]
    assert said[7].startswith("checkpoint 1 of ")
    assert said[7].endswith(', epoch 1: {"at":"paying"}')
    assert said[8] == 'note why: "damaged"'
    assert [line.rpartition(": ")[2] for line in said[9:]] == ["lease", "operation refund"]


def test_resume_as_json(cli: Cli, at_work: Task) -> None:
    told = cli("task", "resume", at_work.id, "--json").data
    assert (told["task"], told["version"], told["checkpoint"]["data"]) == (at_work.id, at_work.version, {"at": "paying"})
    assert {name: [item["name"] for item in listed] for name, listed in told["operations"].items()} == {
        "finished": ["load"],
        "in_doubt": ["refund"],
        "pending": ["notify", "mail", "archive"],
    }
    ended = cli("task", "resume", "01890000-0000-7000-8000-000000000000")
    assert (ended.status, ended.err.partition(":")[0]) == (4, "unknown_task")


def test_whoever_cancels_is_told_what_had_happened(cli: Cli, pm: Pointsman, at_work: Task) -> None:
    mail = pm.begin(at_work.id, "mail", by="bob", epoch=at_work.epoch, effect="mail").operation
    pm.finish(mail.id, "succeeded", by="bob", epoch=at_work.epoch)
    said = cli("task", "cancel", at_work.id, "--as", "olga", "--reason", "wrong order").out
    lines = [line.split() for line in said.splitlines()]
    assert said.startswith(f"cancelled: task {at_work.id} is dropped")
    assert [line[:-1] for line in lines if line and line[0] in ("load", "mail", "refund")] == [
        ["load", "happened"],
        ["mail", "happened", "cannot", "be", "undone"],
        ["refund", "in", "doubt"],
    ]


def test_the_cancel_report_as_json(cli: Cli, pm: Pointsman, task: Task) -> None:
    refund = pm.begin(task.id, "refund", by="bob", epoch=task.epoch, effect="refund").operation
    pm.finish(refund.id, "succeeded", by="bob", epoch=task.epoch)
    pm.begin(task.id, "mail", by="bob", epoch=task.epoch, effect="mail")
    told = cli("task", "cancel", task.id, "--as", "olga", "--reason", "wrong order", "--json").data
    names = {name: [item["name"] for item in listed] for name, listed in told.items() if name != "task"}
    assert names == {"happened": ["refund"], "in_doubt": ["mail"], "undoable": ["refund"], "not_undoable": []}
    assert told["in_doubt"][0]["status"] == "in_doubt"


def test_history_names_the_operation(cli: Cli, at_work: Task) -> None:
    said = cli("task", "history", at_work.id).out
    assert "load: started" in said
    assert "load: succeeded" in said
    assert "notify: not done" in said


REFUND = 'refund(order="A-1", amount=12)'


def test_whoever_decides_sees_what_that_allows(cli: Cli, pm: Pointsman) -> None:
    made = pm.create("refunds", {"order": "A-1", "amount": 12}, by="ann")
    taken = pm.claim("refunds", by="bob", id=made.id)
    assert taken is not None
    assert "allows" not in cli("task", "show", made.id).out, "nothing that can be asked for now leads there"
    pm.propose(made.id, "submit", by="bob", epoch=taken.epoch)
    for command in (("task", "show"), ("audit", "report")):
        said = [line for line in cli(*command, made.id).out.splitlines() if line.startswith("approve allows:")]
        assert [line.partition(":")[2].strip() for line in said] == [
            'take_back(order="A-1", amount=12): cannot be undone',
            REFUND,
            'mail(order="A-1"): cannot be undone',
        ]
    effects = cli("audit", "report", made.id, "--json").data["effects"]
    assert effects[1] == {
        "event": "approve",
        "effect": "refund",
        "kind": "lookup",
        "request": {"order": "A-1", "amount": 12},
        "given": [],
        "undoable": True,
    }
    assert [item["undoable"] for item in effects] == [False, True, False]


def test_an_owner_sees_what_it_may_do_now(cli: Cli, task: Task) -> None:
    said = cli("task", "show", task.id).out
    assert f"open to the owner:  {REFUND}" in said
    assert "approve allows" not in said


def test_text_of_a_stranger_stays_on_its_line(cli: Cli, pm: Pointsman) -> None:
    made = pm.create("refunds", {"order": "A\u2028approve allows: gift()\u009b31m", "amount": 12}, by="ann")
    taken = pm.claim("refunds", by="bob", id=made.id)
    assert taken is not None
    pm.propose(made.id, "submit", {"why": "\u2028to be done: gift\u009b31m"}, by="bob", epoch=taken.epoch)
    for command in ("show", "resume"):
        said = cli("task", command, made.id).out
        assert "\u2028" not in said
        assert "\u009b" not in said
