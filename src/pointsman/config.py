"""Settings: one frozen value from flags, `POINTSMAN_*` variables and `pointsman.toml`, in that order of weight.

The only reader of `os.environ`. A relative path in `pointsman.toml` starts at that file, in a flag or a variable at
the working directory; after `load` every path is absolute, so messages can name the file they mean.
"""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pointsman.engine.operating import of_rate
from pointsman.engine.view import RELEASE_PER_S
from pointsman.errors import invalid

FILE = "pointsman.toml"
SQLITE = "sqlite:///"
MEMORY = ":memory:"
MOST_WORKERS = 64
_PASSWORD = re.compile(r"postgres(?:ql)?://(?:[^/@]*:[^/@]+@|.*[?&]\w*password=)")


@dataclass(frozen=True, slots=True)
class Config:
    """`name` is who acts when no `--as` is given; `source` the pointsman.toml that was read."""

    db: str
    work: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8470
    workers: int = 1
    name: str | None = None
    json: bool = False
    release_per_s: int = RELEASE_PER_S
    source: Path | None = None

    @property
    def secret(self) -> bool:
        """Whether the database's URL holds a password, before its host or as a parameter of libpq's."""
        return _PASSWORD.match(self.db) is not None


# What each setting is called in pointsman.toml (and, upper case after POINTSMAN_, in the environment), and its type.
KEYS: Mapping[str, type] = {
    "db": str,
    "work": str,
    "host": str,
    "port": int,
    "workers": int,
    "as": str,
    "json": bool,
    "release_per_s": int,
}
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")


def settings(**flags: Any) -> Config:
    """The settings of this process. A flag that was not given is None."""
    return load(flags, os.environ, Path.cwd())


def unset_environment() -> dict[str, str]:
    """The environment of this process without any setting of ours, for one that is to start from the defaults."""
    return {name: value for name, value in os.environ.items() if not name.startswith("POINTSMAN_")}


def handed_on(config: Config, name: str) -> dict[str, str]:
    """The environment of this process, for a command that it starts: what `pointsman` there needs to find the same board
    and to act under the same name is set."""
    ours = {"POINTSMAN_DB": config.db, "POINTSMAN_AS": name} | ({"POINTSMAN_WORK": str(config.work)} if config.work else {})
    return {**os.environ, **ours}


def load(flags: Mapping[str, Any], env: Mapping[str, str], cwd: Path) -> Config:
    source = find(cwd)
    wanted = {key: value for key, value in flags.items() if value is not None}
    if wrong := [(f"--{key}", fault) for key, value in wanted.items() if (fault := _range(key, value))]:
        raise invalid(*wrong)
    given = (
        (_read(source), source.parent if source else cwd),
        (_variables(env), cwd),
        (wanted, cwd),
    )
    merged: dict[str, Any] = {"db": SQLITE + str(cwd / "pointsman.db")}
    for values, base in given:
        merged |= _anchored(values, base)
    if "as" in merged:
        merged["name"] = merged.pop("as")
    return Config(**merged, source=source)


def find(cwd: Path) -> Path | None:
    """The pointsman.toml in force: upward from `cwd`, then beside the repository's common git directory."""
    places = [*_upward(cwd, FILE)] + [common.parent / FILE for common in _common_git(cwd)]
    return next((place for place in places if place.is_file()), None)


def _upward(cwd: Path, name: str) -> Iterator[Path]:
    return (folder / name for folder in (cwd, *cwd.parents))


def _common_git(cwd: Path) -> Iterator[Path]:
    """The git directory that all worktrees of a repository share: a worktree's `.git` file leads to it."""
    dot_git = next((place for place in _upward(cwd, ".git") if place.exists()), None)
    if dot_git is None:
        return
    own = dot_git
    if dot_git.is_file():
        own = dot_git.parent / dot_git.read_text(errors="replace").partition("gitdir:")[2].strip()
    link = own / "commondir"
    yield (own / link.read_text(errors="replace").strip()).resolve() if link.is_file() else own.resolve()


def _read(source: Path | None) -> dict[str, Any]:
    if source is None:
        return {}
    try:
        values = tomllib.loads(source.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as exc:
        raise invalid((str(source), str(exc))) from exc
    faults = [(f"{source}: {key}", fault) for key, value in values.items() if (fault := _fault(key, value))]
    if faults:
        raise invalid(*faults)
    return values


def _fault(key: str, value: Any) -> str | None:
    if key not in KEYS:
        return f"no such setting; the settings are {', '.join(KEYS)}"
    if type(value) is not KEYS[key]:
        return f"must be a {KEYS[key].__name__}"
    return _range(key, value)


def _range(key: str, value: Any) -> str | None:
    if key == "port" and not 0 <= value <= 65535:
        return "must be from 0 to 65535"
    if key == "workers" and not 1 <= value <= MOST_WORKERS:
        return f"must be from 1 to {MOST_WORKERS}"
    if key == "release_per_s" and of_rate(value):
        return of_rate(value)[0][1]
    return "must not be blank" if value == "" else None


def _variables(env: Mapping[str, str]) -> dict[str, Any]:
    return {key: _typed(key, env[name]) for key in KEYS if (name := f"POINTSMAN_{key.upper()}") in env}


def _typed(key: str, text: str) -> Any:
    """A variable's text as the setting's type."""
    name = f"POINTSMAN_{key.upper()}"
    if KEYS[key] is bool:
        if text.lower() not in _TRUE + _FALSE:
            raise invalid((name, f"must be one of {', '.join(_TRUE + _FALSE[1:])}"))
        return text.lower() in _TRUE
    if KEYS[key] is int and not (text.isascii() and text.isdigit()):
        raise invalid((name, "must be a whole number"))
    value = KEYS[key](text)
    if fault := _range(key, value):
        raise invalid((name, fault))
    return value


def _anchored(values: Mapping[str, Any], base: Path) -> dict[str, Any]:
    anchored = dict(values)
    if "work" in values:
        anchored["work"] = base / values["work"]
    path = sqlite_path(values.get("db", ""))
    if path is not None:
        anchored["db"] = SQLITE + str(base / path)
    return anchored


def sqlite_path(url: str) -> Path | None:
    """The file a `sqlite:///` URL names; None for another database or one in memory."""
    name = url.removeprefix(SQLITE)
    return None if name in (url, "", MEMORY) else Path(name)
