"""The official client on a desk in this process, and answers read as tests want them."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as sdk
from mcp import Client

from pointsman import Event, Machine, NonBlank, Pointsman, State, Verdict, check, contributor, note, optional, owner, role
from pointsman.mcp.desk import Desk
from pointsman.mcp.seat import Held, Seat
from pointsman.mcp.server import server

Json = dict[str, Any]


def short_enough(draft: str | None) -> Verdict:
    return Verdict(bool(draft) and len(draft or "") < 20, "at most 20 characters")


class Articles(Machine, name="articles"):
    """Articles that a writer writes."""

    title: NonBlank
    epoch: int
    lines: list[str] | None = None
    draft: str | None = None
    remark: str | None = note()

    idea = State(initial=True)
    writing = State()
    ready = State()
    dropped = State(final=True, outcome="failed")

    short = check(short_enough)

    take = Event(idea >> writing, acquires=True)
    request_approval = Event(writing >> ready, by=owner, sets="draft", requires=short, otherwise=writing)
    drop = Event(ready >> dropped, by=role("reviewer") & ~contributor, sets=optional("remark", None))


def connected(desk: Desk, seat: Seat, use: Callable[[Client], Awaitable[Any]], mode: str = "legacy") -> Any:
    """Run `use` with a client that speaks to the desk from this seat."""

    async def session() -> Any:
        async with Client(server(desk, lambda _: seat), mode=mode) as client:  # type: ignore[arg-type]
            return await use(client)

    return asyncio.run(session())


def seated(name: str | None = "worker-a", *, holds: bool = False) -> Seat:
    return Seat(() if name is None else (name,), "open", Held() if holds else None)


def calling(pm: Pointsman, name: str | None = "worker-a", *, holds: bool = False) -> Callable[..., Json]:
    """`call(tool, **arguments)` from one seat: the answer, whether or not it is a refusal."""
    desk, seat = Desk(pm, holds=holds), seated(name, holds=holds)

    def call(tool: str, **arguments: Any) -> Json:
        answer = asyncio.run(desk.call(tool, arguments, seat))
        assert answer.refused == ("code" in answer.content and "pending" not in answer.content)
        return answer.content

    return call


def content(result: sdk.CallToolResult) -> Json:
    """What a client gets: the same JSON twice, within 20 kB."""
    (text,) = result.content
    assert isinstance(text, sdk.TextContent)
    assert len(text.text.encode()) <= 20_000
    assert json.loads(text.text) == result.structured_content
    return dict(result.structured_content or {})
