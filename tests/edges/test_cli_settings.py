"""Flags, variables and pointsman.toml set the same things, and flags win."""

import subprocess
from pathlib import Path

import pytest

from pointsman.config import Config, find, load
from pointsman.errors import Refused


def faults(exc: pytest.ExceptionInfo[Refused]) -> list[str]:
    assert exc.value.code == "invalid"
    return [item["path"] for item in exc.value.failed]


def test_without_any_setting_the_database_is_in_the_working_directory(tmp_path: Path) -> None:
    assert load({}, {}, tmp_path) == Config(db=f"sqlite:///{tmp_path}/pointsman.db")


def test_a_flag_wins_over_a_variable_and_a_variable_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "pointsman.toml").write_text('host = "::1"\nport = 1\nas = "toml"\njson = true\n')
    env = {"POINTSMAN_PORT": "2", "POINTSMAN_AS": "env", "POINTSMAN_OTHER": "x"}
    config = load({"as": "flag", "port": None}, env, tmp_path)
    assert (config.host, config.port, config.name, config.json) == ("::1", 2, "flag", True)


def test_relative_paths_start_where_they_were_written(tmp_path: Path) -> None:
    (tmp_path / "pointsman.toml").write_text('db = "sqlite:///a.db"\nwork = "work.py"\n')
    below = tmp_path / "deep" / "down"
    below.mkdir(parents=True)
    config = load({}, {}, below)
    assert (config.db, config.work) == (f"sqlite:///{tmp_path}/a.db", tmp_path / "work.py")
    assert load({"db": "sqlite:///b.db"}, {}, below).db == f"sqlite:///{below}/b.db"
    assert load({}, {"POINTSMAN_DB": "sqlite:////abs/c.db"}, below).db == "sqlite:////abs/c.db"


@pytest.mark.parametrize("url", ["postgresql://ann:secret@db/work", "sqlite:///:memory:"])
def test_a_database_that_is_no_file_is_left_as_named(tmp_path: Path, url: str) -> None:
    assert load({"db": url}, {}, tmp_path).db == url


def test_worktrees_of_one_repository_share_the_file_beside_its_git_directory(tmp_path: Path) -> None:
    home, tree = tmp_path / "home", tmp_path / "elsewhere" / "tree"
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"]
    subprocess.run([*git, "init", "--quiet", str(home)], check=True)
    subprocess.run([*git, "-C", str(home), "commit", "--quiet", "--allow-empty", "-m", "start"], check=True)
    subprocess.run([*git, "-C", str(home), "worktree", "add", "--quiet", str(tree)], check=True, capture_output=True)
    (home / "pointsman.toml").write_text("port = 9\n")
    assert find(tree) == home / "pointsman.toml"
    (tree / "pointsman.toml").write_text("port = 10\n")
    assert find(tree) == tree / "pointsman.toml"


@pytest.mark.parametrize(
    ("text", "path"),
    [("prot = 1", "prot"), ('port = "1"', "port"), ("port = 70000", "port"), ("json = 1", "json"), ('db = ""', "db"), ("port = ", "")],
)
def test_a_fault_in_the_file_names_the_file_and_the_setting(tmp_path: Path, text: str, path: str) -> None:
    source = tmp_path / "pointsman.toml"
    source.write_text(text)
    with pytest.raises(Refused) as exc:
        load({}, {}, tmp_path)
    assert faults(exc) == [f"{source}: {path}" if path else str(source)]


@pytest.mark.parametrize(("name", "value"), [("PORT", "x"), ("PORT", "-1"), ("PORT", "70000"), ("JSON", "maybe"), ("DB", "")])
def test_a_fault_in_a_variable_names_it(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(Refused) as exc:
        load({}, {f"POINTSMAN_{name}": value}, tmp_path)
    assert faults(exc) == [f"POINTSMAN_{name}"]
