"""P2, the part of a failover: the primary is killed under load and its synchronous standby takes over. What was
acknowledged is there, what was unknown is settled by its key, and nobody restarts anything but the database."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from faults import pair
from faults.pair import Pair
from pointsman import Pointsman
from pointsman.errors import StoreError

CALLERS, BEFORE, AFTER = 8, 60, 40
PATIENCE_S = 60


@pytest.fixture
def servers() -> Iterator[Pair]:
    with pair.synchronous() as running:
        yield running


class Caller:
    """Creates tasks, each under a key of its own, and asks again under the same key until it is answered."""

    def __init__(self, pm: Pointsman, name: str, enough: Event):
        self._pm, self._name, self._enough = pm, name, enough
        self.acknowledged: dict[str, str] = {}
        self.outcomes: list[str] = []

    def run(self) -> None:
        while not self._enough.is_set():
            key = f"{self._name}-{len(self.acknowledged)}"
            self.acknowledged[key] = self._create(key)

    def _create(self, key: str) -> str:
        for _ in range(PATIENCE_S * 20):
            try:
                return self._pm.create("tasks", {"title": key, "brief": "b"}, by=self._name, idempotency_key=key).id
            except StoreError as error:
                self.outcomes.append(error.outcome)
                Event().wait(0.05)
        raise AssertionError("the service did not come back")


def _reached(callers: list[Caller], count: int) -> None:
    pair.until(lambda: sum(len(caller.acknowledged) for caller in callers) >= count)


def test_a_synchronous_standby_takes_over(servers: Pair) -> None:
    servers.primary.create()
    url, enough = servers.url(servers.primary.made[0]), Event()
    with Pointsman(url) as one, Pointsman(url) as other, ThreadPoolExecutor(CALLERS) as pool:
        callers = [Caller((one, other)[number % 2], f"caller-{number}", enough) for number in range(CALLERS)]
        running = [pool.submit(caller.run) for caller in callers]
        _reached(callers, BEFORE)
        servers.fail_over()
        _reached(callers, sum(len(caller.acknowledged) for caller in callers) + AFTER)
        enough.set()
        for future in running:
            future.result(PATIENCE_S)
        assert any(caller.outcomes for caller in callers), "nobody noticed: the failover came too late"
        acknowledged = {key: task for caller in callers for key, task in caller.acknowledged.items()}
        board = {task.fields["title"]: task.id for task in one.list(limit=1000)}
        assert acknowledged == board, "what was acknowledged is there, and each key made one task"
        assert one.verify(other.head()).ok
