"""`--arg name=value`: what becomes text and what becomes JSON."""

import io
from pathlib import Path

import pytest

from pointsman.cli.arguments import arguments, value
from pointsman.errors import Refused
from pointsman.kernel.definition import Definition, Field
from pointsman.kernel.ingest import TOTAL_BYTES

STRING, INTEGER = {"type": "string"}, {"type": "integer"}
MAYBE = {"anyOf": [STRING, {"type": "null"}]}
CHOICE = {"$ref": "#/$defs/Size", "$defs": {"Size": {"enum": ["s", "m"], "type": "string"}}}
FIELDS = (Field("title", STRING), Field("note", MAYBE), Field("size", INTEGER), Field("tags", {"type": "array"}))
MACHINE = Definition("m", 1, fields=FIELDS)


@pytest.mark.parametrize("text", ["5", "true", "null", '{"a": 1}', "", "a=b", " spaced "])
@pytest.mark.parametrize("schema", [STRING, MAYBE, CHOICE])
def test_a_field_that_can_hold_text_takes_the_value_as_it_stands(text: str, schema: dict[str, object]) -> None:
    assert value(text, schema) == text


@pytest.mark.parametrize(("text", "expected"), [("5", 5), ("true", True), ("null", None), ('["a", 1.5]', ["a", 1.5]), ('"x"', "x")])
def test_any_other_field_reads_json(text: str, expected: object) -> None:
    assert value(text, INTEGER) == expected


@pytest.mark.parametrize("text", ["abc", "NaN", "-Infinity", '{"a": 1, "a": 2}', "1" * 5000, "[" * 100_000, "", "1 2"])
def test_what_is_no_json_stays_text_for_the_engine_to_judge(text: str) -> None:
    assert value(text, INTEGER) == text


def test_each_value_is_read_by_its_field() -> None:
    given = ["title=5", "note=null", "size=5", 'tags=["a"]', "other=5", "words=of text"]
    assert arguments(given, MACHINE) == {"title": "5", "note": "null", "size": 5, "tags": ["a"], "other": 5, "words": "of text"}


def test_a_value_can_come_from_a_file_or_from_stdin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "draft.md").write_bytes("# Ünï\r\n\n".encode())
    (tmp_path / "tags.json").write_text('["a"]\n')
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"from a pipe\n")))
    given = [f"title=@{tmp_path}/draft.md", f"tags=@{tmp_path}/tags.json", "note=@-", "handle=@@ann"]
    assert arguments(given, MACHINE) == {"title": "# Ünï\r\n\n", "tags": ["a"], "note": "from a pipe\n", "handle": "@ann"}


@pytest.mark.parametrize("source", ["/dev/zero", "long.txt"])
def test_a_file_without_end_is_refused(tmp_path: Path, source: str) -> None:
    (tmp_path / "long.txt").write_text("x" * (TOTAL_BYTES + 1))
    with pytest.raises(Refused) as refused:
        arguments([f"title=@{tmp_path / source}"], MACHINE)
    assert refused.value.code == "too_large"


@pytest.mark.parametrize("given", [["title"], ["=x"], ["title=a", "title=b"], ["title=@/no/such/file"], ["title=@/"]])
def test_what_cannot_be_read_is_invalid(given: list[str]) -> None:
    with pytest.raises(Refused) as exc:
        arguments(given, MACHINE)
    assert exc.value.code == "invalid"


def test_a_file_that_is_not_utf8_is_invalid(tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(b"\xff\xfe")
    with pytest.raises(Refused, match="UTF-8"):
        arguments([f"title=@{tmp_path}/raw"], MACHINE)
