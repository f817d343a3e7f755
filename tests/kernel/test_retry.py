"""Backoff: a random part of a span that doubles with every error, up to a cap."""

import pytest

from pointsman.kernel.definition import Retry
from pointsman.kernel.retry import delay

RETRY = Retry(tries=5, base=2_000_000, cap=600_000_000)


@pytest.mark.parametrize(
    ("errors", "chance", "rest"),
    [
        (0, 0.0, 0),
        (0, 1.0, 2_000_000),
        (0, 0.5, 1_000_000),
        (1, 1.0, 4_000_000),
        (8, 1.0, 512_000_000),
        (9, 1.0, 600_000_000),
        (10_000, 0.25, 150_000_000),
    ],
)
def test_the_span_doubles_up_to_the_cap(errors: int, chance: float, rest: int) -> None:
    assert delay(RETRY, errors, chance) == rest
