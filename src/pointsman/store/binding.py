"""What is alike on every database: what a statement may be given, and what its shape answers."""

from collections.abc import Callable, Collection, Mapping
from math import isfinite
from typing import Any, NoReturn

from pointsman.errors import StoreError
from pointsman.store.database import Row

PLAIN = frozenset({int, str, bytes, type(None)})
"""What a parameter may be, exactly: SQLite would take True for 1. A float may be bound too, but not NaN: it would become NULL."""
MOVED = "what was read moved inside the transaction; nothing was written, try again"


def _none(name: str, rows: list[Row]) -> None:
    return None


def _sure(name: str, rows: list[Row]) -> None:
    if not rows:
        raise StoreError("store_busy", MOVED)


def _one(name: str, rows: list[Row]) -> Row:
    if len(rows) != 1:
        raise LookupError(f"{name} found {len(rows)} rows where one is")
    return rows[0]


def _one_or_none(name: str, rows: list[Row]) -> Row | None:
    return _one(name, rows) if rows else None


def _many(name: str, rows: list[Row]) -> list[Row]:
    return rows


ANSWERS: Mapping[str, Callable[[str, list[Row]], Any]] = {
    ":none": _none,
    ":sure": _sure,
    ":one": _one,
    ":one?": _one_or_none,
    ":many": _many,
}


def ended(*_: Any) -> NoReturn:
    raise RuntimeError("the transaction has ended")


def refuse_misfits(statement: str, wanted: Collection[str], given: Mapping[str, Any]) -> None:
    """A TypeError for names that are not the statement's, or values that cannot be bound. It never shows a value."""
    if set(given) != set(wanted):
        raise TypeError(f"{statement} takes ({', '.join(wanted)}) and was given ({', '.join(given)})")
    wrong = [f"{name} is {type(value).__name__}" for name, value in given.items() if not _bindable(value)]
    if wrong:
        raise TypeError(f"{statement}: {', '.join(wrong)}; int, finite float, str, bytes and None can be bound")


def _bindable(value: object) -> bool:
    return type(value) in PLAIN or (type(value) is float and isfinite(value))
