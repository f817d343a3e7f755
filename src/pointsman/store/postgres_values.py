"""Values as PostgreSQL takes them: as text, with the type that Python's type stands for."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from psycopg import DataError

from pointsman.store.binding import refuse_misfits
from pointsman.store.postgres_statements import Spelled

LARGEST = 2**63 - 1
FLOAT = 701


class Bound(NamedTuple):
    """A statement with its values, ready to be sent, and their types as PostgreSQL numbers them."""

    statement: Spelled
    values: list[bytes | None]
    types: tuple[int, ...]


def bind(statement: Spelled, given: Mapping[str, Any]) -> Bound:
    """A TypeError when `given` is not what the statement takes."""
    try:
        values = [given[name] for name in statement.parameters]
        types = tuple([_OIDS[type(value)] for value in values])
    except KeyError:
        refuse_misfits(statement.name, statement.parameters, given)
        raise
    if len(given) != len(values) or FLOAT in types:
        refuse_misfits(statement.name, statement.parameters, given)
    return Bound(statement, [None if value is None else _WRITTEN[type(value)](value) for value in values], types)


def _integer(value: int) -> bytes:
    if not -LARGEST - 1 <= value <= LARGEST:
        raise OverflowError("an integer is beyond 64 bits")
    return b"%d" % value


def _text(value: str) -> bytes:
    if "\0" in value:
        raise DataError("PostgreSQL text cannot hold NUL")
    return value.encode()


_OIDS: Mapping[type, int] = {int: 20, str: 25, float: FLOAT, bytes: 17, type(None): 0}
"""By Python's exact type. What is null may be of any."""

_WRITTEN: Mapping[type, Callable[[Any], bytes]] = {
    int: _integer,
    str: _text,
    float: lambda value: repr(value).encode(),
    bytes: lambda value: b"\\x" + value.hex().encode(),
}
