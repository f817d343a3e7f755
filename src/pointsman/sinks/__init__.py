"""Where messages go: a sink for each kind of hook."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from pointsman.engine.relaying import TAKEN, Answer, Outlet, Sink
from pointsman.kernel.chain import parse
from pointsman.kernel.hook import Hook
from pointsman.kernel.message import Message
from pointsman.sinks.lines import cloudevents
from pointsman.sinks.notes import ntfy, slack
from pointsman.sinks.signed import webhook
from pointsman.sinks.web import Resolve, resolved
from pointsman.types import Instant

Receiver = Callable[[dict[str, Any]], object]
"""A function of the embedding program. It is given a message (its id, type, timestamp and data) once or more often, and has taken it
when it returns."""

__all__ = ["Receiver", "outlet"]


def outlet(receivers: Mapping[str, Receiver] | None = None, *, resolve: Resolve = resolved) -> Outlet:
    """Every kind of sink; `receivers` are the functions that hooks with the URL call:NAME name."""
    sinks: Mapping[str, Sink] = {
        "webhook": webhook(resolve),
        "slack": slack(resolve),
        "ntfy": ntfy(resolve),
        "cloudevents": cloudevents,
        **{f"call:{name}": partial(_call, receiver) for name, receiver in (receivers or {}).items()},
    }
    return lambda hook: sinks.get(hook.url if hook.kind == "call" else hook.kind)


def _call(receiver: Receiver, hook: Hook, message: Message, now: Instant) -> Answer:
    receiver({"id": message.id, **parse(message.body)})
    return TAKEN
