"""`init --agent`: what stands in each client's file, what is kept, and what is asked first."""

import json
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edges.cli import Cli
from pointsman.config import Config

FILES = {"claude-code": ".mcp.json", "codex": ".codex/config.toml", "opencode": "opencode.json"}


def in_claude_code(path: Path) -> list[str]:
    server = json.loads(path.read_text())["mcpServers"]["pointsman"]
    assert set(server) == {"type", "command", "args"}
    assert server["type"] == "stdio"
    return [server["command"], *server["args"]]


def in_codex(path: Path) -> list[str]:
    server = tomllib.loads(path.read_text())["mcp_servers"]["pointsman"]
    assert set(server) == {"command", "args"}
    return [server["command"], *server["args"]]


def in_opencode(path: Path) -> list[str]:
    server = json.loads(path.read_text())["mcp"]["pointsman"]
    assert set(server) == {"type", "command", "enabled"}
    assert (server["type"], server["enabled"]) == ("local", True)
    return server["command"]


READ: dict[str, Callable[[Path], list[str]]] = {"claude-code": in_claude_code, "codex": in_codex, "opencode": in_opencode}


@pytest.mark.parametrize("agent", FILES)
def test_a_new_board_with_an_agent(cli: Cli, tmp_path: Path, agent: str) -> None:
    board = tmp_path / "bo ard"
    made = cli("init", "bo ard", "--agent", agent, "--yes", "--json").data
    assert made["files"] == [str(board / name) for name in ("work.py", "pointsman.toml", FILES[agent])]
    starts = [sys.executable, "-m", "pointsman", "mcp", str(board / "work.py"), "--db", f"sqlite:///{board}/pointsman.db", "--as"]
    assert READ[agent](board / FILES[agent]) == [*starts, agent]


@pytest.mark.parametrize("agent", FILES)
def test_it_is_shown_and_then_asked_for(cli: Cli, tmp_path: Path, agent: str) -> None:
    ended = cli("init", "--agent", agent)
    assert (ended.status, ended.out) == (2, "")
    assert '"pointsman", "mcp"' in " ".join(ended.err.split())
    assert f"--yes: {tmp_path / FILES[agent]} would be written" in ended.err
    assert not (tmp_path / FILES[agent]).exists()


@pytest.mark.parametrize("agent", FILES)
def test_what_is_there_is_kept_and_twice_is_once(cli: Cli, tmp_path: Path, agent: str) -> None:
    cli("init")
    (tmp_path / "work.py").write_text((tmp_path / "work.py").read_text() + "\n# mine\n")
    file = tmp_path / FILES[agent]
    file.parent.mkdir(exist_ok=True)
    file.write_text(OTHERS[agent])
    assert cli("init", "--agent", agent, "--as", "me-1", "--yes", "--json").data["files"] == [str(file)]
    assert (tmp_path / "work.py").read_text().endswith("# mine\n")
    assert READ[agent](file)[-1] == "me-1"
    assert "another" in file.read_text()
    before = file.read_text()
    again = cli("init", "--agent", agent, "--as", "me-1", "--json").data  # nothing to ask, for nothing changes
    assert (again["files"], file.read_text()) == ([], before)


OTHERS = {
    "claude-code": '{"mcpServers": {"another": {"command": "x"}}}',
    "codex": '# mine\nmodel = "m"\n\n[mcp_servers.another]\ncommand = "x"',
    "opencode": '{"theme": "t", "mcp": {"another": {"type": "local", "command": ["x"]}}}',
}


def test_what_a_person_wrote_in_toml_stays_as_written(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / ".codex").mkdir()
    file = tmp_path / ".codex" / "config.toml"
    file.write_text(OTHERS["codex"])
    cli("init", "--agent", "codex", "--yes")
    assert file.read_text().startswith(OTHERS["codex"] + "\n\n[mcp_servers.pointsman]\n")


UNFIT: dict[str, tuple[str, Any]] = {
    "comments in JSON": ("opencode", '// mine\n{"mcp": {}}'),
    "a list": ("claude-code", "[]"),
    "servers in a list": ("claude-code", '{"mcpServers": []}'),
    "no TOML": ("codex", "this is = = not"),
    "another server of that name": ("codex", '[mcp_servers.pointsman]\ncommand = "x"\n'),
    "not UTF-8": ("codex", b"\xff\xfe"),
}


@pytest.mark.parametrize(("agent", "text"), UNFIT.values(), ids=UNFIT.keys())
def test_a_file_that_cannot_be_added_to_is_left_alone(cli: Cli, tmp_path: Path, agent: str, text: str | bytes) -> None:
    file = tmp_path / FILES[agent]
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    before = file.read_bytes()
    ended = cli("init", "--agent", agent, "--yes", "--json")
    assert (ended.status, ended.refusal["code"], file.read_bytes()) == (2, "invalid", before)


@pytest.mark.parametrize("agent", FILES)
@pytest.mark.parametrize("url", ["postgresql://ann:hunter2@127.0.0.1:1/work", "postgresql:///work?host=/none&password=hunter2"])
def test_a_password_is_not_copied_into_a_client_s_file(cli: Cli, tmp_path: Path, agent: str, url: str) -> None:
    (tmp_path / "pointsman.toml").write_text(f'db = "{url}"')
    before = set(tmp_path.rglob("*"))
    ended = cli("init", "--agent", agent, "--yes", "--json")
    assert (ended.status, ended.refusal["code"], ended.refusal["failed"][0]["path"]) == (2, "invalid", "--agent")
    assert "hunter2" not in ended.out + ended.err
    assert set(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "url", ["postgresql://ann@h/w", "postgresql://h:5433/w", "postgresql:///w?host=/a:b@c&passfile=/x", "sqlite:////a:b@c/w?password=no.db"]
)
def test_a_url_without_a_password_is_no_secret(url: str) -> None:
    assert not Config(db=url).secret
