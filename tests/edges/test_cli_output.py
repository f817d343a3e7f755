"""What a person sees: untrusted text stays data, tables and colour only on a terminal."""

import io
import json

import pytest

from pointsman.cli import output
from pointsman.errors import Refusal

HOSTILE = "a\x1b[31mred\x07\r\nb\u202etxt\u200b[bold]x[/bold]"


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_what_cannot_be_seen_is_spelled_out() -> None:
    assert output.visible(HOSTILE) == r"a\x1b[31mred\x07\r\nb\u202etxt\u200b[bold]x[/bold]"
    assert output.visible(None) == ""
    assert output.visible("Zürich 東京 👩‍👩".replace("\u200d", "")) == "Zürich 東京 👩👩"


def test_a_table_is_plain_lines_when_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(("id", "about"), [("1", HOSTILE), ("2", None)], "title")
    assert capsys.readouterr().out.splitlines() == ["id\tabout", f"1\t{output.visible(HOSTILE)}", "2\t"]


def test_a_terminal_gets_a_drawn_table_in_which_markup_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setenv("TERM", "xterm-256color")
    output.table(("id", "about"), [("1", "[bold]x[/bold] \x1b]0;owned\x07")], "Board")
    drawn = screen.getvalue()
    assert "───" in drawn
    assert r"[bold]x[/bold] \x1b]0;owned\x07" in drawn
    assert "\x07" not in drawn


def test_styled_text_is_plain_text_when_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    output.styled(("accepted", "green"), (" done", ""))
    assert capsys.readouterr().out == "accepted done\n"


def test_a_refusal_is_one_line_with_its_code_and_what_can_be_done(capsys: pytest.CaptureFixture[str]) -> None:
    no = Refusal("wrong_state", "not open\nin done", state="done", version=7, allowed=("fail",), unblock=("role operator",), recorded=True)
    output.refusal(no, json_line=False)
    said = "wrong_state: not open\\nin done (recorded; state done, version 7; open to you now: fail; unblock: role operator)\n"
    assert capsys.readouterr() == ("", said)


def test_a_refusal_as_json_is_one_line_with_every_member(capsys: pytest.CaptureFixture[str]) -> None:
    no = Refusal("stale_version", "moved on", task="t", version=7)
    output.refusal(no, json_line=True)
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert json.loads(err) == no.as_json()


def test_json_is_ascii_where_the_stream_is() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    output.as_json({"title": "Zürich"}, stream)
    stream.seek(0)
    assert json.loads(stream.read()) == {"title": "Zürich"}


def test_text_of_several_lines_keeps_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    output.pairs([("draft", "one\ntwo\x1b"), ("n", 5), ("empty", None)])
    assert capsys.readouterr().out == "draft  one\n       two\\x1b\nn      5\nempty  \n"
