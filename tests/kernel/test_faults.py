"""Each fault of a definition is found, named, and placed on its line."""

import inspect
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from pointsman import (
    DefinitionError,
    Effect,
    Event,
    Machine,
    Schedule,
    State,
    Tasks,
    Verdict,
    check,
    computed,
    contributor,
    note,
    optional,
    owner,
    role,
)
from pointsman.errors import Fault
from pointsman.kernel.definition import Definition, Retry
from pointsman.kernel.faults import faults
from pointsman.kernel.functions import guard, judge
from pointsman.kernel.marks import always
from pointsman.types import hours, minutes


def long_enough(text: str) -> Verdict:
    return Verdict(len(text) > 3)


def reads_reason(reason: str | None) -> Verdict:
    return Verdict(True)


def reads_nothing_known(txet: str) -> Verdict:
    return Verdict(True)


def length(text: str) -> int:
    return len(text)


def sized_without_a_type(text: str):
    return len(text)


def takes_all(*text: str) -> Verdict:
    return Verdict(True)


async def later(text: str) -> Verdict:
    return Verdict(True)


def sees_the_moon(moon: str) -> bool:
    return True


ROUND: list = []
ROUND.append(ROUND)


class Local:
    """No JSON Schema fits this."""


elsewhere = State()


# ── one function per case; `# here` marks the line of the fault ──────────────────────────────────────────────────


def unreachable():
    class M(Machine, name="m"):
        new = State(initial=True)
        lost = State()  # here
        end = State(final=True, outcome="failed")
        stop = Event((new | lost) >> end)


def no_way_out_by_no_event():
    class M(Machine, name="m"):
        new = State(initial=True)
        pit = State()  # here
        end = State(final=True, outcome="failed")
        fall = Event(new >> pit, pit >> pit)
        stop = Event(new >> end)


def no_way_out_of_a_circle():
    class M(Machine, name="m"):
        new = State(initial=True)
        one = State()
        two = State()  # here
        end = State(final=True, outcome="failed")
        fall = Event(new >> one)
        turn = Event(one >> two)
        back = Event(two >> one)
        stop = Event(new >> end)


def out_of_final():
    class M(Machine, name="m"):
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)
        revive = Event(end >> new)  # here


def shadowed():
    class M(Machine, name="m"):
        new = State(initial=True)
        mid = State()
        end = State(final=True, outcome="failed")
        go = Event(new >> mid, new >> end)  # here
        stop = Event(mid >> end)


def nobody_by_contradiction():
    class M(Machine, name="m"):
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        take = Event(new >> new, acquires=True)
        stop = Event(new >> end)
        never = Event(new >> end, by=owner & ~contributor)  # here


def nobody_because_nobody_owns():
    class M(Machine, name="m"):
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end, by=owner)  # here


def no_initial():
    class M(Machine, name="m"):  # here
        new = State()
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)


def two_initial():
    class M(Machine, name="m"):
        new = State(initial=True)
        other = State(initial=True)  # here
        end = State(final=True, outcome="failed")
        stop = Event((new | other) >> end)


def no_cancel_target():
    class M(Machine, name="m"):  # here
        new = State(initial=True)
        end = State(final=True)
        stop = Event(new >> end)


def bad_retry_that_is_none():
    class M(Machine, name="m"):
        retry = 5  # here
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)


def bad_retry_that_never_tries():
    class M(Machine, name="m"):  # here
        retry = Retry(tries=0)
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)


def bad_limit_of_children():
    class M(Machine, name="m"):  # here
        max_children = -1
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)


def bad_limit_of_depth():
    class M(Machine, name="m"):  # here
        max_depth = -1
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)


def bad_kind_of_a_depth():
    class M(Machine, name="m"):  # here
        max_depth = True
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)


def bad_kind_of_the_name():
    class M(Machine, name=5):  # here
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)


def bad_kind_of_a_deadline():
    class M(Machine, name="m"):
        new = State(initial=True, deadline="5")  # here
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)


def bad_kind_of_a_lease():
    class M(Machine, name="m"):
        new = State(initial=True, lease=1.5)  # here
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)


def bad_kind_of_a_timeout():
    class M(Machine, name="m"):
        text: str
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        fits = check(long_enough, timeout="5")  # here
        stop = Event(new >> end, requires=fits)


def bad_kind_of_a_functions_version():
    class M(Machine, name="m"):
        text: str
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        fits = check(long_enough, version="2")  # here
        stop = Event(new >> end, requires=fits)


def bad_proof():
    class M(Machine, name="m"):
        proves = 5  # here
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)


def bad_name_of_a_tool():
    class M(Machine, name="m"):
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end, tool="stop it!")  # here


def field_type_with_keys_that_are_no_text():
    class M(Machine, name="m"):
        seats: dict[int, str]  # here
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)


def bad_default_that_holds_itself():
    class M(Machine, name="m"):
        texts: list = ROUND  # here
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)


def bad_outcome_of_a_state_that_is_not_final():
    class M(Machine, name="m"):
        new = State(initial=True, outcome="failed")  # here
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)


def bad_outcome_that_is_none():
    class M(Machine, name="m"):
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        fine = State(final=True, outcome="splendid")  # here
        stop = Event(new >> end)
        shine = Event(new >> fine)


def final_waits():
    class M(Machine, name="m"):
        new = State(initial=True)
        end = State(final=True, outcome="failed", lease=minutes(1))  # here
        stop = Event(new >> end)


def bad_time():
    class M(Machine, name="m"):
        new = State(initial=True, deadline=0)  # here
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)


def bad_time_beyond_the_calendar():
    class M(Machine, name="m"):
        new = State(initial=True, deadline=2**62)  # here
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)


def bad_time_of_an_effect_beyond_the_calendar():
    class M(Machine, name="m"):
        order: str
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)
        pay = Effect("pay", during=new, request="order", kind="lookup", settle=2**62)  # here


def bad_time_of_a_check_beyond_the_calendar():
    class M(Machine, name="m"):
        text: str
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        good = check(long_enough, timeout=2**62)  # here
        stop = Event(new >> end)


def bad_retry_beyond_the_calendar():
    class M(Machine, name="m"):  # here
        retry = Retry(cap=2**62)
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)


def unknown_state_on_lapse():
    class M(Machine, name="m"):
        new = State(initial=True, lease=minutes(1), on_lapse="nowhere")  # here
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)


def no_lease():
    class M(Machine, name="m"):
        new = State(initial=True, on_lapse="same")  # here
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)


def no_deadline():
    class M(Machine, name="m"):
        new = State(initial=True, on_deadline="remind")  # here
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)


def unfit_deadline_that_acquires():
    class M(Machine, name="m"):
        new = State(initial=True, deadline=hours(1), on_deadline="take")  # here
        mid = State(lease=hours(1))
        end = State(final=True, outcome="failed")
        take = Event(new >> mid, acquires=True)
        stop = Event((new | mid) >> end)


def unfit_deadline_that_must_set():
    class M(Machine, name="m"):
        text: str | None = None
        new = State(initial=True, deadline=hours(1), on_deadline="stop")  # here
        end = State(final=True, outcome="failed")
        stop = Event(new >> end, sets="text")


def reserved_name_escalate():
    class M(Machine, name="m"):
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        escalate = Event(new >> end)  # here


def bad_schedule_of_cron():
    class M(Machine, name="m"):
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)
        nightly = Schedule("0 25 * * *")  # here


def bad_schedule_of_zone():
    class M(Machine, name="m"):
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)
        nightly = Schedule("0 3 * * *", tz="Europe/Nowhere")  # here


def bad_schedule_of_fields():
    class M(Machine, name="m"):
        title: str
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)
        nightly = Schedule("0 3 * * *", fields={"titel": "t"})  # here


def bad_schedule_of_no_fields():
    class M(Machine, name="m"):
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)
        nightly = Schedule("0 3 * * *", fields="t")  # type: ignore[arg-type]  # here


def bad_schedule_by_nobody():
    class M(Machine, name="m"):
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)
        nightly = Schedule("0 3 * * *", by="anonymous")  # here


def bad_schedule_that_misfires_oddly():
    class M(Machine, name="m"):
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)
        nightly = Schedule("0 3 * * *", misfire="twice")  # type: ignore[arg-type]  # here


def bad_effect_of_kind():
    class M(Machine, name="m"):
        order: str
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)
        pay = Effect("pay", during=new, request="order", kind="hope")  # type: ignore[arg-type]  # here


def bad_effect_at_the_end():
    class M(Machine, name="m"):
        order: str
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)
        pay = Effect("pay", during=new | end, request="order", kind="keyed")  # here


def bad_effect_of_a_field_twice():
    class M(Machine, name="m"):
        order: str
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)
        pay = Effect("pay", during=new, request=("order", "order"), kind="keyed")  # here


def bad_effect_undone_by_nothing():
    class M(Machine, name="m"):
        order: str
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)
        pay = Effect("pay", during=new, request="order", kind="keyed", undo="unpay")  # here


def bad_effect_undone_by_itself():
    class M(Machine, name="m"):
        order: str
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)
        pay = Effect("pay", during=new, request="order", kind="keyed", undo="pay")  # here


def bad_time_of_an_effect():
    class M(Machine, name="m"):
        order: str
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)
        pay = Effect("pay", during=new, request="order", kind="lookup", settle=-1)  # here


def unknown_field_of_an_effect():
    class M(Machine, name="m"):
        order: str
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)
        pay = Effect("pay", during=new, request="ordre", kind="keyed")  # here


def reads_no_content_of_an_effect():
    class M(Machine, name="m"):
        order: str
        remark: str | None = note()
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)
        pay = Effect("pay", during=new, request="remark", kind="keyed")  # here


def unknown_event_at_the_deadline():
    class M(Machine, name="m"):
        new = State(initial=True)
        mid = State(deadline=hours(1), on_deadline="go")  # here
        end = State(final=True, outcome="failed")
        go = Event(new >> mid)
        stop = Event((new | mid) >> end)


def unknown_state_of_another_machine():
    class M(Machine, name="m"):
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)
        go = Event(new >> elsewhere)  # here


def unknown_state_otherwise():
    class M(Machine, name="m"):
        text: str
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        good = check(long_enough)
        stop = Event(new >> end, requires=good, otherwise=elsewhere)  # here


def unused_otherwise():
    class M(Machine, name="m"):
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end, otherwise=new)  # here


def unknown_check():
    class M(Machine, name="m"):
        text: str
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end, requires=check(long_enough))  # here


def unknown_field_that_an_event_sets():
    class M(Machine, name="m"):
        text: str
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end, sets="txet")  # here


def unknown_field_that_a_check_reads():
    class M(Machine, name="m"):
        text: str
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        good = check(reads_nothing_known)  # here
        stop = Event(new >> end)


def reads_no_content():
    class M(Machine, name="m"):
        reason: str | None = note()
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        good = check(reads_reason)  # here
        stop = Event(new >> end)


def sets_computed():
    class M(Machine, name="m"):
        text: str
        size = computed(length)
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end, sets="size")  # here


def sets_twice():
    class M(Machine, name="m"):
        text: str | None = None
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end, sets=("text", optional("text")))  # here


def no_default():
    class M(Machine, name="m"):
        text: str  # here
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end, sets="text")


def bad_default_of_a_field():
    class M(Machine, name="m"):
        text: str = 5  # here
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)


def bad_default_of_a_setting():
    class M(Machine, name="m"):
        text: str = ""
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end, sets=optional("text"))  # here


def bad_default_that_is_no_json():
    class M(Machine, name="m"):
        text: str = Local()  # here
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)


def field_type():
    class M(Machine, name="m"):
        text: Local  # here
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)


def field_type_outside_the_subset():
    class M(Machine, name="m"):
        text: bytes  # here
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)


def field_type_that_is_no_name():
    class M(Machine, name="m"):
        text: "NoSuchType"  # noqa: F821 # here
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)


def untyped():
    class M(Machine, name="m"):
        text = ""  # here
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)


def name_clash_in_the_body():
    class M(Machine, name="m"):
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)
        stop = Event(new >> end)  # noqa: PIE794 # here


def name_clash_of_two_annotations():
    class M(Machine, name="m"):
        text: str
        text: int  # noqa: PIE794 # here
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)


def name_clash_of_field_and_state():
    class M(Machine, name="m"):
        new: str = State(initial=True)  # here
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)


def name_clash_of_two_names_for_one_state():
    class M(Machine, name="m"):
        new = State(initial=True)
        fresh = new  # here
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)


def name_clash_of_functions():
    def long_enough(text: str) -> Verdict:
        return Verdict(True)

    class M(Machine, name="m"):
        text: str
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        one = check(globals()["long_enough"])
        two = check(long_enough)  # here
        stop = Event(new >> end)


def reserved_name():
    class M(Machine, name="m"):
        new = State(initial=True)
        same = State()  # here
        end = State(final=True, outcome="failed")
        go = Event(new >> same)
        stop = Event((new | same) >> end)


def reserved_name_of_a_role():
    class M(Machine, name="m"):
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end, by=role("anonymous"))  # here


def bad_name():
    class M(Machine, name="m"):
        new = State(initial=True)
        ende_übrig = State(final=True, outcome="failed")  # here
        stop = Event(new >> ende_übrig)


def bad_name_of_a_machine():
    class M(Machine, name="a machine"):  # here
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)


def bad_version_of_a_machine():
    class M(Machine, name="m"):  # here
        version = 0
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)


def bad_version_of_a_check():
    class M(Machine, name="m"):
        text: str
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        good = check(long_enough, version=0)  # here
        stop = Event(new >> end)


def bad_words_to_tell():
    class M(Machine, name="m"):
        text: str
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end, tells="two\nlines")  # here


def bad_words_that_are_none():
    class M(Machine, name="m"):
        text: str
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end, tells=" ")  # here


def tool_clash_with_the_server():
    class M(Machine, name="m"):
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        checkpoint = Event(new >> end)  # here


def tool_clash_of_two_events():
    class M(Machine, name="m"):
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)  # here
        halt = Event(new >> end, tool="stop")


def unused_tool():
    class M(Machine, name="m"):
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        take = Event(new >> new, acquires=True, tool="take_it")  # here
        stop = Event(new >> end)


def no_moves():
    class M(Machine, name="m"):
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)
        idle = Event()  # here


def bad_rule():
    class M(Machine, name="m"):
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end, by="reviewer")  # here


def bad_function_async():
    class M(Machine, name="m"):
        text: str
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        good = check(later)  # here
        stop = Event(new >> end)


def bad_function_without_a_name():
    class M(Machine, name="m"):
        text: str
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        good = check(lambda text: Verdict(bool(text)))  # here
        stop = Event(new >> end)


def bad_function_of_any_arguments():
    class M(Machine, name="m"):
        text: str
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        good = check(takes_all)  # here
        stop = Event(new >> end)


def bad_function_without_a_type():
    class M(Machine, name="m"):
        text: str
        size = computed(sized_without_a_type)  # here
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)


def bad_function_that_sees_too_much():
    class M(Machine, name="m"):
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end, when=guard(sees_the_moon))  # here


def bad_time_of_a_check():
    class M(Machine, name="m"):
        text: str
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        good = check(long_enough, timeout=0)  # here
        stop = Event(new >> end)


def eager_opinion():
    class M(Machine, name="m"):
        text: str
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        good = check(long_enough, eager=True, opinion=True)  # here
        stop = Event(new >> end, requires=good)


def bad_judge():
    class M(Machine, name="m"):
        text: str
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        good = judge("It is good.", model="somebody", reads="text")  # here
        stop = Event(new >> end, requires=good)


def false_proof():
    class M(Machine, name="m"):
        text: str
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        look = Event(new >> new, by=role("reviewer"))
        stop = Event(new >> end)
        proves = (always(end, look),)  # here


def unknown_event_in_a_proof():
    class M(Machine, name="m"):
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)
        proves = (always(end, Event(new >> end)),)  # here


CODES = {
    "bad_kind",
    "bad_proof",
    "bad_retry",
    "bad_limit",
    "unreachable",
    "no_way_out",
    "out_of_final",
    "shadowed",
    "nobody",
    "no_initial",
    "two_initial",
    "no_cancel_target",
    "bad_outcome",
    "final_waits",
    "bad_time",
    "unknown_state",
    "no_lease",
    "no_deadline",
    "unfit_deadline",
    "bad_schedule",
    "bad_effect",
    "unknown_event",
    "unused_otherwise",
    "unknown_check",
    "unknown_field",
    "reads_no_content",
    "sets_computed",
    "sets_twice",
    "no_default",
    "bad_default",
    "field_type",
    "untyped",
    "name_clash",
    "reserved_name",
    "bad_name",
    "bad_version",
    "bad_words",
    "tool_clash",
    "unused_tool",
    "no_moves",
    "bad_rule",
    "bad_function",
    "eager_opinion",
    "bad_judge",
    "false_proof",
}


def code_of(case: Callable[[], None]) -> str | None:
    return next((code for code in CODES if case.__name__ == code or case.__name__.startswith(code + "_")), None)


CASES = [item for item in list(globals().values()) if inspect.isfunction(item) and item.__module__ == __name__ and code_of(item)]


def here(case: Callable[[], None]) -> int:
    lines, start = inspect.getsourcelines(case)
    return start + next(number for number, line in enumerate(lines) if line.rstrip().endswith("# here"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_fault_is_named_and_placed_on_its_line(case: Callable[[], None]) -> None:
    with pytest.raises(DefinitionError) as caught:
        case()
    assert (code_of(case), here(case)) in [(fault.code, fault.line) for fault in caught.value.faults]
    assert not any(fault.warning for fault in caught.value.faults)


def test_every_fault_code_has_a_case() -> None:
    from pointsman.kernel import close, kinds, prove
    from pointsman.kernel import faults as module

    written = "".join(inspect.getsource(part) for part in (close, kinds, prove, module))
    raised = set(re.findall(r'(?:_at\(\w+, |[fF]ault\(|named\([\w.]+, )"(\w+)"', written))
    assert raised == CODES
    assert {code_of(case) for case in CASES} == CODES


def test_all_faults_come_at_once_in_the_order_of_their_lines() -> None:
    with pytest.raises(DefinitionError) as caught:

        class M(Machine, name="m"):
            text: bytes
            new = State(initial=True)
            lost = State()
            end = State(final=True, outcome="failed")
            stop = Event(new >> end, sets="txet", by=owner)
            back = Event(end >> new)

    codes = [fault.code for fault in caught.value.faults]
    assert {"field_type", "unreachable", "unknown_field", "nobody", "out_of_final"} <= set(codes)
    lines = [fault.line for fault in caught.value.faults]
    assert lines == sorted(lines)
    assert all(str(fault) in str(caught.value) for fault in caught.value.faults)


def test_the_built_in_machine_has_neither_faults_nor_warnings() -> None:
    assert faults(Tasks.definition) == ()


def test_a_definition_made_without_a_class_is_judged_too() -> None:
    broken = replace(Tasks.definition, states=Tasks.definition.states[:-1])
    assert {"unknown_state", "no_cancel_target"} <= {fault.code for fault in faults(broken)}


@pytest.mark.parametrize("duty", ["remind", "escalate", "give_up"])
def test_what_a_deadline_may_do(duty: str) -> None:
    class M(Machine, name="m"):
        new = State(initial=True, deadline=hours(1), on_deadline=duty)
        end = State(final=True, outcome="failed")
        give_up = Event(new >> end, by=role("lead"))
        stop = Event(new >> end)

    assert [fault for fault in faults(M.definition) if not fault.warning] == []


# ── warnings ─────────────────────────────────────────────────────────────────────────────────────────────────────


def warnings(definition: Definition) -> list[Fault]:
    return [fault for fault in faults(definition) if fault.warning]


def changed(**states: dict[str, object]) -> Definition:
    definition = Tasks.definition
    return replace(definition, states=tuple(replace(item, **states.get(item.name, {})) for item in definition.states))


def test_a_reviewer_may_be_absent() -> None:
    (warning,) = warnings(changed(awaiting_approval={"deadline": None, "on_deadline": None}))
    assert (warning.code, warning.line) == ("absent_reviewer", Tasks.definition.state["awaiting_approval"].line)


def test_a_deadline_may_pass_without_anything_happening() -> None:
    assert [w.code for w in warnings(changed(awaiting_approval={"on_deadline": None}))] == ["idle_deadline"]


def test_a_lapsed_task_may_go_where_nobody_acquires_it() -> None:
    assert [w.code for w in warnings(changed(drafting={"on_lapse": "same"}))] == ["lost_owner"]


def test_only_a_lost_owner_could_move_the_task_on() -> None:
    class M(Machine, name="m"):
        new = State(initial=True)
        mine = State()
        end = State(final=True, outcome="failed")
        take = Event(new >> mine, acquires=True)
        stop = Event(mine >> end, by=owner)

    (warning,) = warnings(M.definition)
    assert (warning.code, warning.line) == ("lost_owner", M.definition.state["mine"].line)


def test_an_opinion_may_be_the_only_gate() -> None:
    class M(Machine, name="m"):
        text: str
        new = State(initial=True)
        done = State(final=True)
        end = State(final=True, outcome="failed")
        good = check(long_enough, opinion=True)
        finish = Event(new >> done, requires=good)
        stop = Event(new >> end)

    (warning,) = warnings(M.definition)
    assert (warning.code, warning.place) == ("opinion_alone", "done")


@pytest.mark.parametrize("gate", ["rule", "check"])
def test_an_opinion_beside_another_gate_is_no_warning(gate: str) -> None:
    class M(Machine, name="m"):
        text: str
        new = State(initial=True)
        done = State(final=True)
        end = State(final=True, outcome="failed")
        liked = check(long_enough, opinion=True)
        good = check(long_enough)
        finish = Event(
            new >> done, requires=(liked, good) if gate == "check" else liked, by=role("lead") if gate == "rule" else owner | ~owner
        )
        stop = Event(new >> end)

    assert warnings(M.definition) == []
