"""What only operators do: a caller without a name is none, whatever roles it would have; one who lacks the role is told."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from engine.graph_world import OLGA, Parts, make, park
from pointsman import Pointsman, Principal, Refused

NOBODY = Principal("anonymous", kind="person", auth="open")
LACKING = Principal("rob", roles=frozenset())


@pytest.fixture
def pm(url: str) -> Iterator[Pointsman]:
    with Pointsman(url, [Parts]) as opened:
        yield opened


def _hold(pm: Pointsman, by: Principal) -> Any:
    return pm.hold({"event": "take"}, by=by, reason="x")


def _lift(pm: Pointsman, by: Principal) -> Any:
    return pm.lift(_hold(pm, OLGA).id, by=by)


def _cancel(pm: Pointsman, by: Principal) -> Any:
    return pm.cancel(make(pm).id, by=by, reason="x")


def _unpark(pm: Pointsman, by: Principal) -> Any:
    return pm.unpark(park(pm, make(pm)).id, by=by, reason="x")


@pytest.mark.parametrize("call", [_hold, _lift, _cancel, _unpark])
def test_whoever_has_no_name_is_no_operator(pm: Pointsman, call: Callable[..., Any]) -> None:
    with pytest.raises(Refused) as refused:
        call(pm, NOBODY)
    assert (refused.value.code, [fault["path"] for fault in refused.value.failed]) == ("invalid", ["by"])
    assert all(entry.by != NOBODY.name for entry in pm.history())
    assert call(pm, OLGA)


@pytest.mark.parametrize(
    ("call", "code"), [(_hold, "role_missing"), (_lift, "role_missing"), (_cancel, "not_owner"), (_unpark, "role_missing")]
)
def test_whoever_lacks_the_role_is_none(pm: Pointsman, call: Callable[..., Any], code: str) -> None:
    with pytest.raises(Refused) as refused:
        call(pm, LACKING)
    assert refused.value.code == code
