"""Short notes for people, in Slack's form and in ntfy's: what happened, and a link to where it is shown.

Nothing that an agent or a caller wrote is in them. What a machine's author wrote is escaped all the same.
"""

from functools import partial
from typing import Any

from pointsman.engine.relaying import Answer, Sink
from pointsman.kernel.chain import canonical, parse
from pointsman.kernel.hook import Hook
from pointsman.kernel.message import TOPICS, Message
from pointsman.sinks.web import Resolve, post
from pointsman.types import Instant


def slack(resolve: Resolve) -> Sink:
    return partial(_to_slack, resolve)


def ntfy(resolve: Resolve) -> Sink:
    return partial(_to_ntfy, resolve)


def what(message: Message) -> str:
    """What happened, in words of ours or of the machine's author."""
    said = parse(message.body)["data"].get("words") or TOPICS.get(message.topic) or "this is a test"
    return f"{said} ({message.topic})"


def _link(hook: Hook, message: Message) -> tuple[str, str]:
    """The address of what it is about, and its name."""
    if not message.task:
        return hook.link, "Pointsman"
    data: Any = parse(message.body)["data"]
    return f"{hook.link}/v1/tasks/{message.task}", f"task {message.task} of {data['machine']}, {data['state']}"


def _to_slack(resolve: Resolve, hook: Hook, message: Message, now: Instant) -> Answer:
    link, name = _link(hook, message)
    text = f"{_escaped(what(message))}: <{link}|{_escaped(name)}>"
    body = canonical({"text": text, "unfurl_links": False, "unfurl_media": False})
    return post(hook.url, body.encode(), {"Content-Type": "application/json"}, private=hook.private, resolve=resolve)


def _escaped(text: str) -> str:
    """As Slack asks for: then nothing in it is a mention or a link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("|", "¦")


def _to_ntfy(resolve: Resolve, hook: Hook, message: Message, now: Instant) -> Answer:
    link, name = _link(hook, message)
    headers = {"Content-Type": "text/plain; charset=utf-8", "Title": f"Pointsman: {message.topic}", "Click": link}
    return post(hook.url, f"{what(message)}: {name}".encode(), headers, private=hook.private, resolve=resolve)
