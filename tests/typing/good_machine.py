"""A machine as a user writes it: pyright in strict mode has nothing to say."""

from pydantic import BaseModel

from pointsman import (
    Event,
    Machine,
    NonBlank,
    State,
    Verdict,
    always,
    check,
    computed,
    contributor,
    guard,
    hours,
    judge,
    minutes,
    note,
    optional,
    owner,
    result,
    role,
)


class Order(BaseModel):
    number: str


@check(version=2)
def long_enough(draft: str | None) -> Verdict:
    return Verdict(draft is not None and len(draft) > 40, "too short")


@guard
def in_the_morning(now: int) -> bool:
    return now % hours(24) < hours(12)


def first_word(title: str) -> str:
    return title.split()[0]


class Works(Machine, name="works"):
    """Work."""

    version = 1

    title: NonBlank
    order: Order | None = None
    draft: str | None = None
    review_note: str | None = note()
    receipt: Order | None = result()

    new = State(initial=True)
    mine = State(lease=minutes(15), on_lapse=new)
    waiting = State(deadline=hours(1), on_deadline="remind")
    done = State(final=True)
    failed = State(final=True, outcome="failed")

    size = long_enough
    heading = computed(first_word)
    fits = judge("It is about works.", model="anthropic:claude-opus-5", reads=("title", "draft"), max_tokens=300)

    @check
    @staticmethod
    def named(title: str) -> Verdict:
        return Verdict(bool(title))

    take = Event(new >> mine, mine >> mine, acquires=True, when=in_the_morning)
    ask = Event(mine >> waiting, by=owner, sets="draft", requires=(size, named, fits), otherwise=mine)
    approve = Event(waiting >> done, by=role("lead") & ~contributor, sets=(optional("review_note", ""), "receipt"))
    back = Event((waiting | mine) >> new, requires=size)
    drop = Event(~(done | failed) >> failed, tool="drop_it")

    proves = (always(done, approve),)


verdict: Verdict = long_enough("x")
also: Verdict = Works.named("x")
version: int = Works.definition.version
