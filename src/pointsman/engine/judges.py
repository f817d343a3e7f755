"""How a declared judge becomes a function: the port, and what stands behind it unless a program brings its own."""

from collections.abc import Callable
from time import monotonic
from typing import TypeAlias

from pointsman.kernel.definition import Judge
from pointsman.kernel.verdict import NoVerdict, Verdict
from pointsman.types import Duration, Json, seconds

Judges: TypeAlias = Callable[[Judge, Duration], Callable[..., Verdict]]
"""From a judge and the time it has to a check's function, called by name with what the check reads."""


def by_model(judge: Judge, timeout: Duration) -> Callable[..., Verdict]:
    """Asks the model that the judge names. The extra `judge` is loaded when it is first asked, which takes of its time."""

    def asked(**inputs: Json) -> Verdict:
        began = monotonic()
        try:
            from pointsman.integrations.judge import ask
        except ImportError as error:
            raise NoVerdict(f"asking a model needs an extra: pip install 'pointsman[judge]' ({error})") from error
        return ask(judge, timeout - seconds(monotonic() - began), inputs)

    return asked
