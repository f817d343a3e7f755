"""Undoing effects: in reverse order, by operations of their own, over a crash in the middle."""

from collections.abc import Iterator

import pytest

from pointsman import Effect, Event, Machine, NonBlank, Outcome, Pointsman, Refused, State, Work, Worker, minutes, owner
from pointsman.kernel.operation import Operation
from pointsman.testing import FakeClock
from pointsman.worker.worker import Ended
from worker.jobs import Seconds


class Trips(Machine, name="trips"):
    place: NonBlank

    asked = State(initial=True)
    booking = State(lease=minutes(5), on_lapse="same")
    undoing = State(lease=minutes(5), on_lapse="same")
    booked = State(final=True)
    given_up = State(final=True, outcome="cancelled")

    take = Event(asked >> booking, booking >> booking, undoing >> undoing, acquires=True)
    complete = Event(booking >> booked, by=owner)
    give_up = Event(booking >> undoing, by=owner)
    end = Event(undoing >> given_up, by=owner)

    cancel_flight = Effect("cancel_flight", during=undoing, request="place", kind="keyed")
    cancel_hotel = Effect("cancel_hotel", during=undoing, request="place", kind="keyed")
    flight = Effect("flight", during=booking, request="place", kind="keyed", undo=cancel_flight)
    hotel = Effect("hotel", during=booking, request="place", kind="keyed", undo=cancel_hotel)
    mail = Effect("mail", during=booking, request="place", kind="keyed")


class Died(BaseException):
    """In place of a process that dies."""


class Remote:
    """What arrived, and at which arrival the sender dies."""

    def __init__(self) -> None:
        self.got: list[str] = []
        self.dies_at = ""

    def send(self, operation: Operation) -> str:
        if operation.name == self.dies_at:
            self.dies_at = ""
            raise Died
        if operation.name not in self.got:
            self.got.append(operation.name)
        return operation.name


class World:
    def __init__(self, pm: Pointsman, clock: FakeClock):
        self.pm, self.clock, self.remote = pm, clock, Remote()
        self.ends: list[Ended] = []
        self.left: list[str] = []
        self.id = pm.create("trips", {"place": "Lisbon"}, by="ann").id

    def work(self, by: str) -> None:
        worker = Worker(self.pm, clock=Seconds(self.clock))
        worker.on("trips")(self.begin)
        worker.on("trips", state="undoing")(self.take_back)
        worker.told = self.ends.append
        while worker.run_once(by):
            pass

    def begin(self, work: Work) -> Outcome:
        if work.task.state == "undoing":
            return self.take_back(work)
        for name in ("flight", "hotel", "mail"):
            work.effect(name, self.remote.send)
        work.propose("give_up")
        return self.take_back(work)

    def take_back(self, work: Work) -> Outcome:
        sends = {"cancel_flight": self.remote.send, "cancel_hotel": self.remote.send}
        self.left = [item.name for item in work.undo(sends)]
        return work.propose("end")


@pytest.fixture
def world(url: str) -> Iterator[World]:
    clock = FakeClock()
    with Pointsman(url, [Trips], clock=clock) as pm:
        yield World(pm, clock)
        assert pm.verify().ok


def test_the_last_effect_is_undone_first_and_what_cannot_be_undone_is_told(world: World) -> None:
    world.work("worker-a")
    assert world.remote.got == ["flight", "hotel", "mail", "cancel_hotel", "cancel_flight"]
    assert world.left == ["mail"]
    assert world.pm.get(world.id).state == "given_up"
    kept = {shown.operation.name: shown.operation for shown in world.pm.operations(world.id)}
    assert (kept["cancel_hotel"].compensates, kept["cancel_flight"].compensates) == (kept["hotel"].id, kept["flight"].id)


@pytest.mark.parametrize("dies_at", ["cancel_hotel", "cancel_flight"])
def test_a_crash_in_the_middle_undoes_nothing_twice(world: World, dies_at: str) -> None:
    world.remote.dies_at = dies_at
    with pytest.raises(Died):
        world.work("worker-a")
    world.clock.advance(minutes(6))
    world.work("worker-b")
    assert world.remote.got == ["flight", "hotel", "mail", "cancel_hotel", "cancel_flight"]
    assert world.left == ["mail"]
    assert world.pm.get(world.id).state == "given_up"


def test_nothing_is_undone_while_it_is_not_known_what_happened(world: World) -> None:
    refused: list[str] = []

    def handler(work: Work) -> None:
        work.effect("flight", world.remote.send)
        work.pm.begin(work.task.id, "mail", effect="mail", by="worker-a", epoch=work.task.epoch)
        for sends in ({}, {"cancel_flight": world.remote.send}):
            with pytest.raises(Refused) as no:
                work.undo(sends)
            refused.append(no.value.code)
        shown = work.pm.begin(work.task.id, "mail", effect="mail", by="worker-a", epoch=work.task.epoch)
        work.pm.finish(shown.operation.id, "not_done", by="worker-a", epoch=work.task.epoch)
        with pytest.raises(Refused, match=r"sends\.cancel_flight"):
            work.undo({})

    worker = Worker(world.pm, clock=Seconds(world.clock))
    worker.on("trips")(handler)
    assert worker.run_once("worker-a")
    assert refused == ["operation_in_doubt", "operation_in_doubt"]
    assert world.remote.got == ["flight"]
