"""WORK.PY: which machines it serves, and how its faults are told to its author."""

import sys
from pathlib import Path

import pytest

from pointsman import DefinitionError, Machine, Refused
from pointsman.app import WorkFileError, machines

HEAD = "from pointsman import Event, Machine, State, Tasks\n"
MACHINE = """
class {0}(Machine, name="{0}"):
    version = 1
    start = State(initial=True)
    end = State(final=True, outcome="failed")
    go = Event(start >> end)
"""


def written(folder: Path, *parts: str) -> Path:
    path = folder / "work.py"
    path.write_text(HEAD + "".join(parts))
    return path


def names(found: object) -> list[str]:
    assert isinstance(found, list)
    return [item.definition.name for item in found if issubclass(item, Machine)]


def test_without_a_list_every_machine_written_there_is_served_and_no_imported_one(tmp_path: Path) -> None:
    assert names(machines(written(tmp_path, MACHINE.format("a"), MACHINE.format("b"), "again = b\n"))) == ["a", "b"]


def test_a_list_says_what_is_served_also_the_built_in_machine(tmp_path: Path) -> None:
    assert names(machines(written(tmp_path, MACHINE.format("a"), MACHINE.format("b"), "machines = [Tasks, b]\n"))) == ["tasks", "b"]


def test_without_a_file_the_engine_serves_its_own() -> None:
    assert machines(None) is None


def test_a_work_file_imports_what_lies_beside_it_and_may_postpone_annotations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", list(sys.path))
    (tmp_path / "beside_the_work_file.py").write_text("VERSION = 3\n")
    path = tmp_path / "work.py"
    body = MACHINE.format("a").replace("version = 1", "version = VERSION\n    size: int")
    path.write_text("from __future__ import annotations\n" + HEAD + "from beside_the_work_file import VERSION\n" + body)
    found = machines(path)
    assert found is not None
    assert (found[0].definition.version, found[0].definition.field["size"].schema) == (3, {"type": "integer"})


def test_loading_touches_no_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    machines(written(tmp_path, MACHINE.format("a")))
    assert [path.name for path in tmp_path.iterdir()] == ["work.py"]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("x = 1\ny = (\n", 3, "was never closed"),
        ("x = 1\nraise KeyError('colour')\n", 3, "KeyError: 'colour'"),
        ("\n\nimport no_such_module\n", 4, "no_such_module"),
        ("def f():\n    return 1 / 0\n\nf()\n", 3, "ZeroDivisionError"),
        ("import sys\nsys.exit(3)\n", 3, "SystemExit: 3"),
    ],
)
def test_what_goes_wrong_on_loading_is_told_with_its_line(tmp_path: Path, text: str, line: int, words: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(WorkFileError) as exc:
        machines(path)
    assert str(exc.value).startswith(f"{path}, line {line}: ")
    assert words in str(exc.value)


@pytest.mark.parametrize("text", ["", "machines = []\n", "machines = [1]\n", "machines = Tasks\n", "machines = {}\n"])
def test_a_file_without_a_machine_says_how_to_write_one(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(WorkFileError, match="Articles"):
        machines(path)


def test_a_file_that_is_not_there_is_a_usage_fault(tmp_path: Path) -> None:
    with pytest.raises(Refused) as exc:
        machines(tmp_path / "none.py")
    assert exc.value.code == "invalid"
    assert str(tmp_path / "none.py") in exc.value.detail


def test_a_fault_of_the_definition_keeps_its_line(tmp_path: Path) -> None:
    path = written(tmp_path, MACHINE.format("a").replace("start >> end)", 'start >> end, sets="nothing")'))
    with pytest.raises(DefinitionError) as exc:
        machines(path)
    assert [fault.line for fault in exc.value.faults] == [7]
