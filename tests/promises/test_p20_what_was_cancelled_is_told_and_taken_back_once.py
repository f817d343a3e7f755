"""P20: cancelling stops future steps and says what had already happened; compensation is its own recorded work.

The remote is a process of its own, and its book is the judge. Workers die by SIGKILL at every named point of an effect that
is cancelled in the middle, and at every point of the two effects that take two others back.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from acceptance.board import until
from pointsman import Pointsman
from pointsman.kernel.operation import Happened
from pointsman.worker.owned import POINTS as WORKERS
from promises.doomed import deaths, fatal, fleet, name
from promises.remote import book, running
from promises.taking_back import BOOKINGS, SENT, Trips, Waiting

SENDING = tuple(point for point in (*WORKERS, SENT) if point.partition(".")[0] in ("intent", "send", "outcome", SENT))
"""The points that every effect passes."""
DOUBTFUL = ("intent.after", "send.before", "sent", "send.after", "outcome.before")
LOOKING = tuple(f"{first},{second}" for first in ("send.before", "sent") for second in ("find.before", "find.after", "outcome.before"))
CANCELLED = tuple(f"{point}@2" for point in SENDING)
"""One booking for each: its worker dies in the middle of the second effect, and then it is cancelled."""
TAKEN_BACK = ("", *SENDING, *(f"{point}@2" for point in SENDING), *LOOKING, "send.before,outcome.after", "send.after,send.after")
"""One trip for each: whoever takes its bookings back dies there."""


@dataclass
class World:
    pm: Pointsman
    folder: Path
    back: dict[str, str]
    cancelled: dict[str, tuple[str, Happened]]

    def done(self, id: str) -> list[str]:
        """What the remote did for a task, in order."""
        names = {shown.operation.id: shown.operation.name for shown in self.pm.operations(id)}
        return [names[line["id"]] for line in book(self.folder) if line["id"] in names]


@pytest.fixture(scope="module")
def world(shared_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("deaths")
    with Pointsman(shared_url, [Trips, Waiting]) as pm, running(folder) as remote:

        def trips(points: tuple[str, ...], *, booking: bool) -> dict[str, str]:
            return {point: pm.create("trips", {"fatal": point, "booking": booking}, by="ann").id for point in points}

        dying = trips(CANCELLED, booking=True)
        back = trips(TAKEN_BACK, booking=False)
        made = World(pm, folder, back, {})
        with fleet("promises.taking_back", shared_url, folder, remote):
            for point, id in dying.items():
                until(f"its worker died at {point}", lambda id=id: deaths(folder, id), patience_s=60)
                made.cancelled[point] = id, pm.cancel(id, by="olga", reason="nobody wants to go").report
            until("all are taken back", lambda: all(pm.get(id).state == "given_up" for id in back.values()), patience_s=180)
        yield made
        assert pm.verify().ok


def test_a_worker_died_at_every_point_it_was_told_to(world: World) -> None:
    told = {id: fatal(point) for point, id in world.back.items()} | {id: (point,) for point, (id, _) in world.cancelled.items()}
    assert {id: tuple(deaths(world.folder, id)) for id in told} == told
    assert {name(point) for points in told.values() for point in points} == {*SENDING, "find.before", "find.after"}


def test_whoever_cancels_is_told_what_had_happened_and_nothing_happens_after(world: World) -> None:
    for point, (id, report) in world.cancelled.items():
        told = [item.name for item in report.happened], [item.name for item in report.in_doubt]
        at = name(point)
        assert told == (["flight", "hotel"] if at == "outcome.after" else ["flight"], ["hotel"] if at in DOUBTFUL else []), point
        assert [item.name for item in report.undoable] == told[0], point
        did = world.done(id)
        assert did[:1] == ["flight"], point
        assert {*did} <= {*told[0], *told[1]}, f"{point}: nothing happened that it was not told of, and the mail never went out"
        assert world.pm.get(id).state == "given_up"
        assert world.pm.history(id)[-1].kind == "cancel"


def test_what_is_taken_back_is_taken_back_once_the_last_first(world: World) -> None:
    for point, id in world.back.items():
        assert world.done(id) == [*BOOKINGS, "cancel_hotel", "cancel_flight"], point
        assert world.pm.get(id).fields["left"] == ["mail"], point


def test_what_takes_back_is_recorded_as_work_of_its_own_and_claims_no_more_than_it_did(world: World) -> None:
    receipts = {line["id"]: line["receipt"] for line in book(world.folder)}
    for point, id in world.back.items():
        kept = {shown.operation.name: shown.operation for shown in world.pm.operations(id)}
        assert {item.status for item in kept.values()} == {"succeeded"}, point
        assert {item.name: item.result for item in kept.values()} == {item.name: receipts[item.id] for item in kept.values()}, point
        for undoing, undone in (("cancel_flight", "flight"), ("cancel_hotel", "hotel")):
            assert kept[undoing].compensates == kept[undone].id, point
        entries = [entry.as_json()["changes"]["operation"] for entry in world.pm.history(id) if entry.kind in ("begin", "finish")]
        assert {item["name"] for item in entries} == {*kept}, point


def test_a_worker_that_is_alive_learns_of_it_at_its_next_call(shared_url: str, tmp_path: Path) -> None:
    with (
        Pointsman(shared_url, [Waiting]) as pm,
        running(tmp_path) as remote,
        fleet("promises.taking_back", shared_url, tmp_path, remote),
    ):
        id = pm.create("waiting", {}, by="ann").id
        until("its first effect is done", (tmp_path / f"at-{id}").exists)
        report = pm.cancel(id, by="olga", reason="nobody wants to go").report
        assert ([item.name for item in report.happened], report.in_doubt) == (["flight"], [])
        version = pm.get(id).version
        (tmp_path / f"go-{id}").touch()
        until("its worker left", (tmp_path / f"left-{id}").exists)
        assert len(book(tmp_path)) == 1
        assert pm.get(id).version == version
        next_one = pm.create("waiting", {}, by="ann").id
        (tmp_path / f"go-{next_one}").touch()
        assert pm.wait(next_one, states=["booked"]).state == "booked", "it goes on with other work"
