"""The lint bans clocks, chance and the environment; the modules it lets off are these and no others."""

import tomllib

from house.source import PACKAGE, ROOT

LET_OFF = {
    "src/pointsman/config.py",  # the environment
    "src/pointsman/engine/chance.py",  # the clock and chance that `Pointsman` takes when none are handed in
    "src/pointsman/integrations/judge.py",  # a provider's key, in the variable that the author or the provider names
    "src/pointsman/store/turn.py",  # a lock of another process can only be looked at again, up to a deadline
    "src/pointsman/testing.py",  # chance that repeats itself
}


def test_the_list_of_exempt_modules_is_short_and_true() -> None:
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    exempt = {path for path, codes in lint["per-file-ignores"].items() if "TID251" in codes and path.startswith("src/")}
    assert exempt == LET_OFF
    assert [path for path in exempt if not (ROOT / path).exists()] == []


def test_no_line_switches_the_ban_off_for_itself() -> None:
    silenced = [str(path) for path in PACKAGE.rglob("*.py") if "noqa: TID251" in path.read_text() or "ruff: noqa" in path.read_text()]
    assert silenced == []
