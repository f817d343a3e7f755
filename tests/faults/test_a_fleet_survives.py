"""P1, P2, P3, P12 to P15 and P22 on a whole deployment: two servers and eight workers on one database, killed, frozen and
cut off while they work. Afterwards the record is whole, and nobody was told what is not so.

FLEET_SEED repeats the order of what was done to them in an earlier run, which prints it.
"""

import signal
from pathlib import Path
from random import Random

import pytest

from databases import PostgresServer
from faults import fleet_audit as audit
from faults.fleet import Fleet, fleet, load, poison
from faults.mischief import Mischief, seed
from pointsman import Pointsman, Principal
from pointsman.errors import CODES

SIZES = {"sqlite": {"workers": 1, "runners": 1, "callers": 2}, "postgres": {"workers": 3, "runners": 1, "callers": 4}}
OLGA = Principal("olga", kind="person", roles=frozenset({"operator"}))
SHORT, LONG = (1, 9), (12, 12)
"""How often every deed is done, and how much work comes before that."""
EXIT = CODES["store_busy"].exit
"""Of one that was started while a frozen process kept the write lock."""


@pytest.fixture
def server(url: str, request: pytest.FixtureRequest) -> PostgresServer | None:
    return None if url.startswith("sqlite") else request.getfixturevalue("postgres")


def test_a_fleet_survives(url: str, server: PostgresServer | None, tmp_path: Path) -> None:
    print(_survives(url, server, tmp_path, *SHORT))


@pytest.mark.long
def test_a_fleet_survives_for_minutes(url: str, server: PostgresServer | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = _survives(url, server, tmp_path, *LONG)
    with capsys.disabled():
        print(f"\n{told}")


def _survives(url: str, server: PostgresServer | None, folder: Path, rounds: int, jobs: int) -> str:
    """What happened, in words."""
    chosen = seed()
    print(f"FLEET_SEED={chosen}")
    with fleet(folder, url, **SIZES["postgres" if server else "sqlite"]) as ships:
        poisoned = poison(ships.pm)
        load(ships.pm, jobs)
        ships.ready()
        mischief = Mischief(ships, Random(chosen), server)
        for number in range(rounds):
            if number:
                load(ships.pm, jobs)
            mischief.round(lambda: not _over(ships.pm, poisoned))
        unparked = _comes_to_its_end(ships, poisoned)
        _rests(ships)
        found = _judged(ships, poisoned, refused=mischief.done["late calls refused"])
        return f"{found}, {unparked} unparked; {dict(mischief.done)}; seed {chosen}"


def _over(pm: Pointsman, poisoned: str) -> bool:
    """P12, P13: everything comes to its end, but for what kills its workers."""
    return [(task.id, task.parked is not None) for task in pm.list(open=True, limit=2)] == [(poisoned, True)]


def _comes_to_its_end(ships: Fleet, poisoned: str) -> int:
    """P12: nothing more is done to the fleet, and it goes on until all is over. What was lost too often in the turmoil an
    operator unparks, as it would be; how many that were. In the end nothing may stand still that is not over."""
    pm, unparked = ships.pm, 0
    while not _over(pm, poisoned):
        head = pm.as_of()
        moves = ships.until(lambda head=head: pm.as_of() > head)
        assert moves, [(task.id, task.state, task.version, task.attempts, task.parked) for task in pm.list(open=True, limit=20)]
        for task in pm.list(open=True, limit=20):
            if task.parked is not None and task.id != poisoned:
                pm.unpark(task.id, by=OLGA, reason="it was not its fault")
                unparked += 1
    return unparked


def _rests(ships: Fleet) -> None:
    statuses = ships.rest()
    assert set(statuses) <= {0, -signal.SIGTERM}, statuses  # the signal, for one that had just been started again
    for member in ships.members:
        said = ships.said(member)
        unavailable = {EXIT} if "store_busy" in said or "store_unavailable" in said else set[int]()
        assert set(member.deaths) <= {-signal.SIGKILL} | unavailable, (member.name, member.deaths, said[-3000:])
    for server in ships.servers:
        assert "Traceback" not in ships.said(server), ships.said(server)[-3000:]


def _judged(ships: Fleet, poisoned: str, refused: int) -> str:
    pm, told = ships.pm, ships.told()
    entries = audit.feed(pm)
    histories = audit.by_task(entries)
    tasks = [pm.get(id) for id in histories]
    audit.one_owner_per_epoch(histories)
    audit.time_goes_on(histories)
    audit.acknowledged(histories, told)
    late = audit.replaced_owners_are_refused(histories, told)
    assert late >= refused
    stays = audit.timers_fired_once(histories)
    audit.schedules_fired_once(tasks)
    audit.attempts_are_bounded(histories)
    audit.all_is_over(tasks, poisoned)
    most = audit.limits_hold(entries)
    looked = audit.nobody_was_turned_away(entries, told)
    assert pm.doctor() == []
    assert pm.verify().faults == ()
    lapses = sum(entry.kind == "lapse" for entry in entries)
    return (
        f"{len(tasks)} tasks, {len(entries)} entries, {len(told)} answers, {lapses} lapses, {late} late calls refused, {stays} timers, "
        f"{most} at once on a shelf, {looked} answers of nothing beside waiting tasks"
    )
