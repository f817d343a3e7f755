"""How coding agents are told of an MCP server: each client's file in a project, and what is to stand in it."""

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pointsman.errors import invalid

NAME = "pointsman"


@dataclass(frozen=True, slots=True)
class Client:
    """`merge` makes the new text of the client's file from its present one ("" when there is none) and a command."""

    file: str
    merge: Callable[[str, Sequence[str]], str]
    then: str


def claude_code(text: str, command: Sequence[str]) -> str:
    server = {"type": "stdio", "command": command[0], "args": list(command[1:])}
    return _json_with(text, ("mcpServers",), server)


def opencode(text: str, command: Sequence[str]) -> str:
    server = {"type": "local", "command": list(command), "enabled": True}
    return _json_with(text or '{"$schema": "https://opencode.ai/config.json"}', ("mcp",), server)


def codex(text: str, command: Sequence[str]) -> str:
    """TOML is added at the end, so that what a person wrote stays as written. JSON's strings and lists are TOML's too."""
    server = {"command": command[0], "args": list(command[1:])}
    try:
        present = tomllib.loads(text).get("mcp_servers", {})
    except tomllib.TOMLDecodeError as exc:
        raise invalid(("--agent", f"the file there is not TOML: {exc}")) from exc
    if NAME not in present:
        lines = [f"[mcp_servers.{NAME}]", *(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in server.items())]
        return "\n".join([*([text.rstrip("\n"), ""] if text.strip() else []), *lines, ""])
    if present[NAME] != server:
        raise invalid(("--agent", f"[mcp_servers.{NAME}] stands there already and says something else: take it out first"))
    return text


def _json_with(text: str, place: Sequence[str], server: Mapping[str, Any]) -> str:
    """The JSON object in `text` with the server under `place`; everything else stays."""
    try:
        whole = json.loads(text or "{}")
    except ValueError as exc:
        raise invalid(("--agent", f"the file there is not plain JSON ({exc}); add this by hand: {json.dumps(server)}")) from exc
    inner = whole
    for name in place:
        inner = inner.setdefault(name, {}) if isinstance(inner, dict) else None
    if not isinstance(inner, dict):
        raise invalid(("--agent", f"the file there has no object at {'.'.join(place)}"))
    if inner.get(NAME) == server:
        return text
    inner[NAME] = dict(server)
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


CLIENTS: Mapping[str, Client] = {
    "claude-code": Client(".mcp.json", claude_code, "start `claude` in that folder and allow the server pointsman when it asks"),
    "codex": Client(".codex/config.toml", codex, "start `codex` in that folder; it reads this file only in a project that you trust"),
    "opencode": Client("opencode.json", opencode, "start `opencode` in that folder"),
}


def read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8") if path.exists() else ""
    except (OSError, UnicodeDecodeError) as exc:
        raise invalid(("--agent", f"cannot read {path}: {exc}")) from exc
