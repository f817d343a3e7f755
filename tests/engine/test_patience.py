"""How long a caller would wait is a number of seconds, at every verb that waits; anything else is refused before it is looked for."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import support
from pointsman import Pointsman, Refused, Tasks

Wait = Callable[[Pointsman, str, Any], object]

VERBS: dict[str, Wait] = {
    "claim": lambda pm, id, wait_s: pm.claim("tasks", by=support.OWNER, wait_s=wait_s),
    "claim_many": lambda pm, id, wait_s: pm.claim_many("tasks", 2, by=support.OWNER, wait_s=wait_s),
    "propose": lambda pm, id, wait_s: pm.propose(id, "claim", by=support.OWNER, wait_s=wait_s),
    "feed": lambda pm, id, wait_s: pm.feed(wait_s=wait_s),
    "proposal": lambda pm, id, wait_s: pm.proposal(id, wait_s=wait_s),
}


@pytest.fixture
def pm(url: str) -> Iterator[Pointsman]:
    with Pointsman(url, [Tasks]) as opened:
        yield opened
        assert opened.verify().ok


@pytest.mark.parametrize("wait_s", [-1, -0.001, float("nan"), float("inf"), True, "1"])
@pytest.mark.parametrize("verb", VERBS)
def test_what_is_no_time_to_wait_is_refused_and_nothing_is_written(pm: Pointsman, verb: str, wait_s: Any) -> None:
    task = support.create(pm)
    with pytest.raises(Refused) as refused:
        VERBS[verb](pm, task.id, wait_s)
    assert (refused.value.code, refused.value.failed[0]["path"]) == ("invalid", "wait_s")
    assert pm.get(task.id).version == task.version


@pytest.mark.parametrize("verb", ["claim", "claim_many", "propose"])
def test_not_to_wait_is_a_time_too(pm: Pointsman, verb: str) -> None:
    task = support.create(pm)
    assert VERBS[verb](pm, task.id, 0)
    assert pm.get(task.id).owner == support.OWNER
