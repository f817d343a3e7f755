"""A flat mapping is data: another machine gets paths of its own, with a check that is not eager, and nobody's code."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from pointsman import Event, Machine, NonBlank, Pointsman, State, Verdict, check, owner
from pointsman.http import app
from pointsman.http.flat import TASKS, Flat, Member, Post, Rows


def brief_enough(text: str) -> Verdict:
    if text == "boom":
        raise RuntimeError("no reader at home")
    return Verdict(len(text) < 20, "fits" if len(text) < 20 else "too long to read")


class Letters(Machine, name="letters"):
    """Somebody writes, the same one sends."""

    version = 1
    to: NonBlank
    text: str | None = None

    waiting = State(initial=True)
    writing = State()
    sent = State(final=True)
    torn = State(final=True, outcome="cancelled")

    readable = check(brief_enough)

    take = Event(waiting >> writing, acquires=True)
    tear = Event((waiting | writing) >> torn)
    send = Event(writing >> sent, by=owner, sets="text", requires=readable)


_CLERK = Member("clerk", "caller")
_LETTER = Member("letter", "task")
LETTERS = Flat(
    machine="letters",
    evidence="readable",
    posts=(
        Post("/letters/new", "create", "not made", (Member("addressee", sets="to"),)),
        Post("/letters/take", "claim", "none to take", (_CLERK,)),
        Post("/letters/send", "propose", "not being written by you", (_LETTER, _CLERK, Member("words", sets="text")), event="send"),
    ),
    rows=(Rows("/letters/waiting", ("id", "to", "evidence"), "created_at", state="waiting"),),
)


def served(pm: Pointsman, *flats: Flat) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app(pm, flats)), base_url="http://127.0.0.1")


async def post(client: httpx.AsyncClient, path: str, **members: Any) -> tuple[int, Any]:
    answer = await client.post(path, json=members)
    return answer.status_code, answer.json()


def test_another_machine_on_paths_of_its_own(tmp_path: Path) -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        status, made = await post(client, "/letters/new", addressee="Bob")
        assert (status, made["state"], made["passed"], made["evidence"]) == (200, "waiting", None, None)
        letter = made["id"]
        assert (await client.get("/letters/waiting")).json() == {"rows": [{"id": letter, "to": "Bob", "evidence": None}]}
        assert (await post(client, "/letters/take", clerk="cleo"))[1]["owner"] == "cleo"
        assert await post(client, "/letters/take", clerk="cleo") == (409, {"detail": "none to take"})
        assert await post(client, "/letters/send", letter=letter, clerk="dan", words="hello") == (
            409,
            {"detail": "not being written by you"},
        )
        told = "evidence failed: {'ok': False, 'reason': 'too long to read'}"
        assert await post(client, "/letters/send", letter=letter, clerk="cleo", words="x" * 20) == (409, {"detail": told})
        told = "evidence failed: {'ok': False, 'reason': 'check error: RuntimeError: no reader at home'}"
        assert await post(client, "/letters/send", letter=letter, clerk="cleo", words="boom") == (409, {"detail": told})
        status, sent = await post(client, "/letters/send", letter=letter, clerk="cleo", words="hello")
        assert (status, sent["state"], sent["passed"], sent["evidence"]) == (200, "sent", True, {"ok": True, "reason": "fits"})
        status, told = await post(client, "/letters/new", addressee=" ")
        assert (status, told["detail"][0]["loc"]) == (422, ["body", "addressee"])
        assert (await client.post("/enqueue", json={})).status_code == 404

    with Pointsman(f"sqlite:///{tmp_path}/work.db", [Letters]) as pm:
        asyncio.run(_with(served(pm, LETTERS), scenario))


def test_only_machines_that_are_served_get_paths(tmp_path: Path) -> None:
    with Pointsman(f"sqlite:///{tmp_path}/work.db", [Letters]) as pm:
        paths = set(app(pm, (TASKS, LETTERS)).openapi()["paths"])
    flat = {path for path in paths if not path.startswith("/v1/")} - {"/healthz", "/readyz", "/metrics"}
    assert flat == {"/letters/new", "/letters/take", "/letters/send", "/letters/waiting"}


@pytest.mark.parametrize("post", TASKS.posts, ids=[post.path for post in TASKS.posts])
def test_the_built_in_mapping_fits_its_machine(tmp_path: Path, post: Post) -> None:
    """What the paths set and require is what the machine's events take."""
    with Pointsman(f"sqlite:///{tmp_path}/work.db") as pm:
        machine = pm.machines["tasks"]
    sent = {member.sets: member.required for member in post.members if member.sets}
    if post.verb == "create":
        assert sent == {field.name: True for field in machine.fields if field.name not in machine.settable}
    if post.verb == "propose":
        assert sent == {setting.field: setting.required for setting in machine.event[post.event].sets}
        assert any(member.kind == "digest" for member in post.members) == machine.event[post.event].decides


async def _with(client: httpx.AsyncClient, scenario: Any) -> None:
    async with client:
        await scenario(client)
