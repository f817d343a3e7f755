"""What a decision can be: values, never exceptions."""

from collections.abc import Mapping
from dataclasses import dataclass

from pointsman.errors import Refusal
from pointsman.kernel.bound import Judgement
from pointsman.kernel.task import Task
from pointsman.types import Fields, Json


@dataclass(frozen=True, slots=True)
class Need:
    """A check to run on exactly these inputs."""

    check: str
    inputs: Fields
    digest: str


@dataclass(frozen=True, slots=True)
class Accept:
    """The task after the step and what history keeps of it. `refusal` is set when the `otherwise` branch was taken; `takes`
    when the event itself was, so that it uses up what its limits count."""

    after: Task
    kind: str
    event: str
    from_state: str | None
    payload: dict[str, Json]
    refusal: Refusal | None = None
    takes: bool = False


@dataclass(frozen=True, slots=True)
class Refuse:
    refusal: Refusal


@dataclass(frozen=True, slots=True)
class NeedChecks:
    """Run these and ask again; `epoch` is the one under which they were asked for."""

    needs: tuple[Need, ...]
    epoch: int


Decision = Accept | Refuse | NeedChecks
Judged = Mapping[str, Judgement]
"""Judgements by the digest of the inputs they judged."""
