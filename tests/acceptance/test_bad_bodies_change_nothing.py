"""What is thrown at the flat paths gets a 4xx that does not repeat it, and leaves no trace in history."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from acceptance.flat import BRIEF, GOOD, NOBODY, TITLE, Client
from acceptance.process import Served
from pointsman import Pointsman

CANARY = "canary-7f3a"

FINE: dict[str, dict[str, Any]] = {
    "/enqueue": {"title": TITLE, "brief": BRIEF},
    "/claim": {"agent_id": "ann", "task_id": NOBODY},
    "/start-draft": {"agent_id": "ann", "task_id": NOBODY},
    "/request-approval": {"agent_id": "ann", "task_id": NOBODY, "draft": GOOD},
    "/approve": {"task_id": NOBODY, "note": "n", "reviewer": "rita", "digest": "d"},
    "/reject": {"task_id": NOBODY, "note": "n", "reviewer": "rita", "digest": "d"},
    "/complete": {"agent_id": "ann", "task_id": NOBODY},
    "/fail": {"agent_id": "ann", "task_id": NOBODY, "note": "n"},
}
REQUIRED = {
    "/enqueue": {"title", "brief"},
    "/claim": {"agent_id"},
    "/start-draft": {"agent_id", "task_id"},
    "/request-approval": {"agent_id", "task_id", "draft"},
    "/approve": {"task_id"},
    "/reject": {"task_id"},
    "/complete": {"agent_id", "task_id"},
    "/fail": {"task_id"},
}

UNPARSABLE = {
    "nothing": b"",
    "white space": b"  \n",
    "cut short": b'{"title": "canary-7f3a"',
    "trailing garbage": b'{"title": "canary-7f3a"} x',
    "two texts": b'{"title": "canary-7f3a"}{}',
    "single quotes": b"{'title': 'canary-7f3a'}",
    "trailing comma": b'{"title": "canary-7f3a",}',
    "comment": b'{"title": "canary-7f3a" /* c */}',
    "byte order mark": b'\xef\xbb\xbf{"title": "canary-7f3a"}',
    "invalid UTF-8": b'{"title": "canary-7f3a\xff\xfe"}',
    "overlong UTF-8": b'{"title": "canary-7f3a\xc0\xaf"}',
    "UTF-16": '{"title": "canary-7f3a"}'.encode("utf-16"),
    "an encoded surrogate": b'{"title": "canary-7f3a\xed\xa0\x80"}',
    "a bare NUL": b'{"title": "canary-7f3a\x00"}',
    "a bare newline": b'{"title": "canary-7f3a\n"}',
    "NaN": b'{"title": NaN}',
    "Infinity": b'{"title": Infinity}',
    "-Infinity": b'{"title": -Infinity}',
    "1e400": b'{"title": 1e400}',
    "5,000 digits": b'{"title": ' + b"9" * 5_000 + b"}",
    "an integer past 64 bits": b'{"title": 9223372036854775808}',
    "a key twice": b'{"title": "canary-7f3a", "title": "canary-7f3a"}',
    "a key twice, spelled in two ways": b'{"title": "canary-7f3a", "\\u0074itle": "canary-7f3a"}',
    "a key twice, deep": b'{"title": {"a": 1, "a": 2}}',
    "65 deep": b'{"title": ' + b"[" * 65 + b"]" * 65 + b"}",
    "100,000 deep": b'{"title": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "100,000 open": b"[" * 100_000,
    "100,000 objects open": b'{"a":' * 100_000,
    "a form": b"title=canary-7f3a&brief=b",
    "XML": b"<title>canary-7f3a</title>",
}
NOT_AN_OBJECT = {
    "null": None,
    "true": True,
    "a number": 5,
    "text": CANARY,
    "a list": [CANARY],
    "a list of objects": [{"title": CANARY}],
    "a million items": [0] * 200_000,
}
NOT_TEXT = {"a number": 5, "a float": 5.0, "true": True, "a list": [CANARY], "an object": {CANARY: CANARY}}
UNKNOWN = (
    "state",
    "owner",
    "id",
    "approved_by",
    "evidence",
    "passed",
    "version",
    "epoch",
    "__proto__",
    "Title",
    CANARY,
    "",
    "a\0b",
    "\ud800",
)
UNFIT_TEXT = {
    "NUL": f"{CANARY}\0",
    "a lone surrogate": f"{CANARY}\ud800",
    "a low surrogate": f"\udc00{CANARY}",
    "too long": CANARY * 30_000,
}
NO_NAME = {
    "empty": "",
    "blank": "   ",
    "tab": f"{CANARY}\t",
    "line feed": f"{CANARY}\nx",
    "carriage return": f"{CANARY}\r\nx: y",
    "129 characters": "a" * 129,
    "10,000 characters": "a" * 10_000,
    "NFC": "Ren\N{LATIN SMALL LETTER E WITH ACUTE}",
    "NFD": "Rene\N{COMBINING ACUTE ACCENT}",
    "bidi override": f"{CANARY}\N{RIGHT-TO-LEFT OVERRIDE}x",
    "zero width": f"{CANARY}\N{ZERO WIDTH SPACE}",
    "homoglyph": "\N{CYRILLIC SMALL LETTER A}nn",
    "markup": f"<b>{CANARY}</b>",
    "reserved": "anonymous",
    "reserved, in capitals": "Anonymous",
}
NO_ID = {
    "empty": "",
    "braces": "{" + NOBODY + "}",
    "urn": f"urn:uuid:{NOBODY}",
    "no hyphens": NOBODY.replace("-", ""),
    "31 digits": NOBODY[:-1],
    "33 digits": NOBODY + "0",
    "a letter too far": NOBODY[:-1] + "g",
    "white space around": f" {NOBODY} ",
    "a line feed after": f"{NOBODY}\n",
    "hyphens misplaced": "0189000-00000-7000-8000-000000000000",
    "full-width digits": NOBODY.replace("0", "\N{FULLWIDTH DIGIT ZERO}"),
    "SQL": "'; DROP TABLE tasks; --",
    "traversal": "../../etc/passwd",
    "a million characters": "0" * 1_000_000,
}


@pytest.fixture(autouse=True)
def _unchanged(served: Served, client: Client) -> Iterator[None]:
    client.bring("queued")
    with Pointsman(served.db) as pm:
        before = pm.history()
    yield
    with Pointsman(served.db) as pm:
        assert pm.history() == before


def refused(client: Client, path: str, body: bytes) -> None:
    answer = client.send("POST", path, body)
    assert answer.status == 422, (path, body[:80], answer)
    for fault in answer.detail:
        assert set(fault) == {"type", "loc", "msg"}
        assert fault["loc"][0] == "body"
    assert CANARY not in json.dumps(answer.body)
    assert len(json.dumps(answer.body)) < 2_000


@pytest.mark.parametrize("path", FINE)
def test_bodies_that_do_not_parse(client: Client, path: str) -> None:
    for body in UNPARSABLE.values():
        refused(client, path, body)


@pytest.mark.parametrize("path", FINE)
def test_bodies_that_are_no_object(client: Client, path: str) -> None:
    for body in NOT_AN_OBJECT.values():
        refused(client, path, json.dumps(body).encode())


@pytest.mark.parametrize("path", FINE)
def test_members_of_another_type(client: Client, path: str) -> None:
    for name in FINE[path]:
        for value in NOT_TEXT.values():
            refused(client, path, json.dumps(FINE[path] | {name: value}).encode())


@pytest.mark.parametrize("path", FINE)
def test_members_that_are_missing_or_null(client: Client, path: str) -> None:
    for name in REQUIRED[path]:
        refused(client, path, json.dumps(FINE[path] | {name: None}).encode())
        refused(client, path, json.dumps({other: value for other, value in FINE[path].items() if other != name}).encode())
    refused(client, path, b"{}")


@pytest.mark.parametrize("path", FINE)
def test_members_that_are_not_known(client: Client, path: str) -> None:
    for name in UNKNOWN:
        refused(client, path, json.dumps(FINE[path] | {name: CANARY}).encode())
    refused(client, path, json.dumps(FINE[path] | {f"k{n}": 0 for n in range(50_000)}).encode())


@pytest.mark.parametrize("path", FINE)
def test_text_that_no_store_takes(client: Client, path: str) -> None:
    for name in FINE[path]:
        for value in UNFIT_TEXT.values():
            refused(client, path, json.dumps(FINE[path] | {name: value}).encode())


@pytest.mark.parametrize("path", [path for path in FINE if FINE[path].keys() & {"agent_id", "reviewer"}])
def test_names_that_are_none(client: Client, path: str) -> None:
    for name in FINE[path].keys() & {"agent_id", "reviewer"}:
        for value in NO_NAME.values():
            refused(client, path, json.dumps(FINE[path] | {name: value}).encode())


@pytest.mark.parametrize("path", [path for path in FINE if "task_id" in FINE[path]])
def test_ids_that_are_none(client: Client, path: str) -> None:
    for value in NO_ID.values():
        refused(client, path, json.dumps(FINE[path] | {"task_id": value}).encode())


@pytest.mark.parametrize("blank", ["", " ", "\t\n", "\N{NO-BREAK SPACE}"])
def test_a_title_or_brief_that_is_blank(client: Client, blank: str) -> None:
    for name in ("title", "brief"):
        refused(client, "/enqueue", json.dumps(FINE["/enqueue"] | {name: blank}).encode())


def test_whose_inbox_must_be_said_once_and_be_a_name(client: Client) -> None:
    for query in ("", "?agent_id=", "?agent_id=%20", "?agent_id=a&agent_id=b", "?agent_id=%00", "?agent_id=%ff", "?agent_id=" + "a" * 129):
        answer = client.send("GET", f"/inbox{query}")
        assert answer.status == 422
        assert [fault["loc"] for fault in answer.detail] == [["query", "agent_id"]]


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/xml",
        "application/jsonp",
        "application/vnd.api+json",
        "application/json; charset=utf-16",
        "application/json, text/plain",
        "",
    ],
)
def test_other_content_types(client: Client, kind: str) -> None:
    for path, members in FINE.items():
        answer = client.send("POST", path, json.dumps(members).encode(), {"content-type": kind})
        assert answer.status == 415
        assert set(answer.body) == {"detail"}


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "gzip, identity"])
def test_encoded_bodies(client: Client, coding: str) -> None:
    for path, members in FINE.items():
        assert client.send("POST", path, json.dumps(members).encode(), {"content-encoding": coding}).status == 415


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_other_methods(client: Client, method: str) -> None:
    for path in FINE:
        answer = client.send(method, path, headers={"x-http-method-override": "POST"})
        assert answer.status == 405
        assert answer.headers["allow"] == "POST"
        assert "access-control-allow-origin" not in answer.headers
    for path in ("/open", "/inbox", "/approvals"):
        if method != "GET":
            assert client.send(method, path).status == 405


@pytest.mark.parametrize("path", ["/open", "/approvals", "/inbox"])
def test_an_overridden_method_is_not_obeyed(client: Client, path: str) -> None:
    for header in ("x-http-method-override", "x-http-method", "x-method-override"):
        assert client.send("POST", path, b"{}", {header: "GET"}).status == 405
