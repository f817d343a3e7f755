"""Misspelt machines: each marked line is an error that pyright tells before anything runs."""

from pointsman import Event, Machine, State, Verdict, always, check


def long_enough(draft: str) -> Verdict:
    return Verdict(len(draft) > 40)


def length(draft: str) -> int:
    return len(draft)


class Works(Machine, name="works"):
    draft: str = 5  # error

    a = State(initial=True)
    b = State(fianl=True)  # error
    c = State(final=True, outcome="splendid")  # error

    good = check(long_enough)
    size = check(length)  # error

    one = Event(a | b >> c)  # error
    two = Event(a >> b >> c)  # error
    three = Event(a)  # error
    four = Event(a >> b, by="reviewer")  # error
    five = Event(a >> b, requires=long_enough)  # error
    six = Event(a >> b, otherwise="a")  # error
    seven = Event(a >> b, sets=5)  # error

    proves = (always(a, b),)  # error


class Nameless(Machine):  # error
    pass


good: int = Works.good("x")  # error
