"""Whatever arguments a client sends, it gets a tool's answer and never a protocol error, and what is refused writes nothing."""

import asyncio
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mcp_types as sdk
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import Client
from mcp.shared.exceptions import MCPError

from edges.mcp_world import Articles, calling, connected, content, seated
from pointsman import Pointsman, Tasks
from pointsman.errors import CODES
from pointsman.mcp.asked import read
from pointsman.mcp.desk import Desk
from pointsman.mcp.tools import Seating, toolbox
from support import submitted

TOOLS = toolbox({"tasks": Tasks.definition, "articles": Articles.definition}, Seating(named=False, holds=False))
KEYS = sorted({name for tool in TOOLS.values() for name in tool.input["properties"]} | {"__proto__", "state", "owner", ""})
TEXT = st.text(st.characters(exclude_categories=()), max_size=30)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=8)
WILD = st.dictionaries(st.sampled_from(KEYS) | TEXT, VALUES, max_size=6)
FIT = {
    "as": st.sampled_from(["worker-a", "rita", "mallory", "anonymous"]),
    "draft": TEXT,
    "title": TEXT,
    "brief": TEXT,
    "epoch": st.integers(0, 3),
    "timeout_s": st.just(0),
    "machine": st.sampled_from(["tasks", "articles"]),
    "event": st.sampled_from(["claim", "start_draft", "approve", "fail", "nope"]),
}


@pytest.fixture(scope="module")
def pm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pointsman]:
    with Pointsman(f"sqlite:///{tmp_path_factory.mktemp('fuzz')}/work.db", [Tasks, Articles]) as opened:
        yield opened


@settings(max_examples=300, deadline=None)
@given(tool=st.sampled_from(sorted(TOOLS)), wild=WILD, data=st.data())
def test_fuzzed_arguments_get_an_answer_and_what_is_refused_writes_nothing(
    pm: Pointsman, tool: str, wild: dict[str, Any], data: Any
) -> None:
    """Wild members among ones that fit, so that some calls get past the first judge. Waits are left out of the wild."""
    task = submitted(pm)
    choices = FIT | {"task_id": st.just(task.id), "digest": st.just(task.digest)}
    fitting = {name: data.draw(choices[name]) for name in TOOLS[tool].input["properties"] if name in choices}
    arguments = fitting | {name: value for name, value in wild.items() if name != "timeout_s"}
    before = pm.as_of()
    answer = asyncio.run(Desk(pm, holds=False).call(tool, arguments, seated(None)))
    assert len(json.dumps(answer.content, ensure_ascii=False, separators=(",", ":")).encode()) <= 20_000
    if answer.refused:
        assert answer.content["code"] in CODES
        assert pm.as_of() == before + answer.content["recorded"]


NOT_OBJECTS = ["text", 5, ["a"], True, 1.5]


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_over_the_wire_too(pm: Pointsman, mode: str) -> None:
    """Through the client, so that what the SDK judges before us is met: arguments that are no object, and more."""
    sent: list[Any] = [*NOT_OBJECTS, None, {}, {"task_id": None}, {"task_id": 5}, {"task_id": "x" * 100_000}, {"__proto__": {"a": 1}}]

    async def use(client: Client) -> list[dict[str, Any]]:
        found = []
        for name in TOOLS:
            for arguments in sent:
                params = sdk.CallToolRequestParams.model_construct(name=name, arguments=arguments)
                request = sdk.CallToolRequest.model_construct(method="tools/call", params=params)
                with warnings.catch_warnings(action="ignore"):  # of the client, about what we make it send
                    result = await client.session.send_request(request, sdk.CallToolResult)
                found.append((result.is_error, content(result)))
        return found

    before = pm.as_of()
    answers = connected(Desk(pm, holds=False), seated(None), use, mode)
    assert {answer["code"] for is_error, answer in answers if is_error} == {"invalid"}
    assert pm.as_of() == before


def test_an_unknown_tool_is_a_protocol_error(pm: Pointsman) -> None:
    async def use(client: Client) -> None:
        with pytest.raises(MCPError) as raised:
            await client.call_tool("drop_table", {})
        assert raised.value.error.code == sdk.INVALID_PARAMS
        assert "drop_table" not in raised.value.error.message

    connected(Desk(pm, holds=False), seated(), use)


def test_every_fault_is_told_with_its_path_and_without_the_input(pm: Pointsman) -> None:
    answer = calling(pm)("create_task", machine="tasks", title=5, brief="  ", SECRET="hunter2", priority=True)
    assert {item["path"] for item in answer["failed"]} >= {"title", "priority", "SECRET"}
    assert "hunter2" not in json.dumps(answer)


def test_what_a_field_admits_is_judged_before_the_engine_is_asked(tmp_path: Path) -> None:
    tool = toolbox({"articles": Articles.definition}, Seating(named=True, holds=True))["create_task"]
    with pytest.raises(Exception, match="lines"):
        read(tool, {"title": "A", "field_epoch": 1, "lines": [1]})
    assert read(tool, {"title": "A", "field_epoch": 1, "lines": None}) == {"title": "A", "field_epoch": 1}
