"""Limits as a table: what is used, what is wanted, and whether there is room; and the lane of a task."""

import pytest

from pointsman import Event, Limit, Machine, Principal, State, field, minutes, owner, seconds
from pointsman.kernel import decide, limits
from pointsman.kernel.bound import Bound
from pointsman.kernel.case import Case, Proposal, Used
from pointsman.kernel.limits import UNIT
from pointsman.kernel.steps import Accept, Refuse
from pointsman.kernel.task import Parked, Task
from pointsman.kernel.terms import Terms

AT = 1_767_225_600_000_000
BY = Principal("w")


class Paid(Machine, name="paid"):
    customer: str | None = None
    amount: int = 1
    open = State(initial=True)
    work = State(lease=minutes(1))
    aside = State(lease=minutes(1), on_lapse="same")
    done = State(final=True, outcome="failed")
    take = Event(open >> work, acquires=True, limits=(Limit("hands", concurrent=2), Limit("calls", per=minutes(1), max=3)))
    back = Event(aside >> work, acquires=True)
    park = Event(work >> aside, by=owner)
    pay = Event(work >> done, by=owner, limits=Limit("money", key=field.customer, per=minutes(1), sum=field.amount, max=10))


MACHINE = Bound(Paid.definition, Paid.functions)


def _new(terms: Terms | None = None, **fields: object) -> Task:
    made = decide.create(MACHINE, "t", fields, BY, AT, terms or Terms())
    assert isinstance(made, Accept)
    return made.after


def _judged(task: Task, event: str, used: dict[str, Used]) -> str | tuple[str, object]:
    case = decide.read(MACHINE, task, Proposal(event, {}, BY, strict=False), AT)
    assert isinstance(case, Case)
    answer = decide.judge(Case(case.machine, case.task, case.event, case.proposal, case.values, case.now, used), {})
    return "yes" if isinstance(answer, Accept) else _why(answer)


def _why(answer: object) -> tuple[str, object]:
    assert isinstance(answer, Refuse)
    return answer.refusal.code, answer.refusal.extra.get("retry_after_s")


TABLE = [
    ({}, "yes"),
    ({"hands": Used(UNIT)}, "yes"),
    ({"hands": Used(2 * UNIT, AT - seconds(9))}, ("limit_reached", 1)),
    ({"calls": Used(2 * UNIT, AT - seconds(9))}, "yes"),
    ({"calls": Used(3 * UNIT, AT - seconds(9))}, ("limit_reached", 51)),
    ({"calls": Used(3 * UNIT, AT - seconds(60))}, ("limit_reached", 1)),
]


@pytest.mark.parametrize(("used", "answer"), TABLE)
def test_an_event_needs_room_in_all_its_limits(used: dict[str, Used], answer: object) -> None:
    assert _judged(_new(), "take", used) == answer


@pytest.mark.parametrize(
    ("amount", "used", "room"), [(10, 0, True), (11, 0, False), (1, 9, True), (2, 9, False), (0, 10, True), (-5, 10, True)]
)
def test_a_sum_counts_the_fields_value_and_nothing_gives_back(amount: int, used: int, room: bool) -> None:
    task = _new(customer="c", amount=amount).but(state="work", owner="w", owner_root="w")
    got = _judged(task, "pay", {"money": Used(used * UNIT, AT)})
    assert (got == "yes") == room


def test_each_value_of_the_key_has_a_limit_of_its_own() -> None:
    (limit,) = Paid.definition.event["pay"].limits
    found = [limits.subject(limit, {"customer": value}) for value in (None, "a", "A", "a" * 300, "a" * 301)]
    assert found[:3] == ["null", '"a"', '"A"']
    assert len(set(found)) == 5
    assert max(len(subject) for subject in found) <= limits.LONGEST


def test_a_lane_says_who_may_take_a_task() -> None:
    task = _new(Terms(tags=("b",), needs=("a",)))
    assert limits.lane(Paid.definition, task) == '{"limits":[["hands",""],["calls",""]],"needs":["a"],"tags":["b"]}'
    owned = task.but(owner="w", state="work")
    assert limits.lane(Paid.definition, owned) == limits.lane(Paid.definition, task), "where it is once the lease has run out"
    aside = task.but(owner="w", state="aside")
    assert limits.lane(Paid.definition, aside) == '{"limits":[],"needs":["a"],"tags":["b"]}'


@pytest.mark.parametrize(
    ("changes", "has"),
    [
        ({"owner": None}, False),
        ({"owner": "w", "state": "work"}, True),
        ({"owner": "w", "state": "done"}, False),
        ({"owner": "w", "state": "work", "parked": Parked("tried", AT)}, False),
    ],
)
def test_a_task_has_a_place_while_somebody_is_at_it(changes: dict[str, object], has: bool) -> None:
    assert limits.has_place(Paid.definition, _new().but(**changes)) is has
