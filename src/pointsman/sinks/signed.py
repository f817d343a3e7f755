"""Webhooks as Standard Webhooks has them: an id that stays, a time, and a signature for each secret that counts."""

from functools import partial

from pointsman.engine.relaying import Answer, Sink
from pointsman.kernel.hook import Hook
from pointsman.kernel.message import Message
from pointsman.kernel.signature import signatures
from pointsman.sinks.web import Resolve, post
from pointsman.types import SECOND, Instant


def webhook(resolve: Resolve) -> Sink:
    return partial(_send, resolve)


def _send(resolve: Resolve, hook: Hook, message: Message, now: Instant) -> Answer:
    body, at = message.body.encode(), now // SECOND
    headers = {
        "Content-Type": "application/json",
        "webhook-id": message.id,
        "webhook-timestamp": str(at),
        "webhook-signature": signatures(hook.signs(now), message.id, at, body),
    }
    return post(hook.url, body, headers, private=hook.private, resolve=resolve)
