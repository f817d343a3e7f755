"""The inbox: a receiver believes what was signed, lately, and does it once."""

from datetime import UTC, datetime
from typing import Any

import pytest
from standardwebhooks import Webhook

from pointsman.inbox import NotGenuine, opened
from pointsman.kernel.signature import sign
from pointsman.types import SECOND, minutes

SECRET, OTHER = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
AT = 1_767_225_600
NOW = AT * SECOND
BODY = b'{"type":"pointsman.parked","data":{}}'


def headers(**changed: str) -> dict[str, str]:
    made = {"Webhook-Id": "msg_1", "Webhook-Timestamp": str(AT), "Webhook-Signature": sign(SECRET, "msg_1", AT, BODY)}
    return made | {f"Webhook-{name.title()}": value for name, value in changed.items()}


def test_a_genuine_message_is_opened() -> None:
    assert opened(headers(), BODY, SECRET, now=NOW) == {"id": "msg_1", "type": "pointsman.parked", "data": {}}
    assert opened(headers(), BODY, [OTHER, SECRET], now=NOW + minutes(5)) is not None


def test_what_the_standards_own_library_signs_is_opened() -> None:
    signature = Webhook(SECRET).sign("msg_1", datetime.fromtimestamp(AT, UTC), BODY.decode())
    assert opened(headers(signature=f"v1,nonsense {signature}"), BODY, SECRET, now=NOW) is not None


FALSE: list[tuple[dict[str, Any], bytes, Any, int]] = [
    (headers(signature=sign(OTHER, "msg_1", AT, BODY)), BODY, SECRET, NOW),
    (headers(signature=""), BODY, SECRET, NOW),
    (headers(signature="v1,ÿ"), BODY, SECRET, NOW),
    (headers(id="msg_2"), BODY, SECRET, NOW),
    (headers(id=""), BODY, SECRET, NOW),
    (headers(timestamp=str(AT + 1)), BODY, SECRET, NOW),
    (headers(timestamp="now"), BODY, SECRET, NOW),
    (headers(timestamp="1" * 400), BODY, SECRET, NOW),
    (headers(), BODY + b" ", SECRET, NOW),
    (headers(), BODY, [], NOW),
    (headers(), BODY, SECRET, NOW + minutes(5) + 1),
    (headers(), BODY, SECRET, NOW - minutes(5) - 1),
    ({}, BODY, SECRET, NOW),
    (headers(id="\udcff"), BODY, SECRET, NOW),
    ({**headers(), "Webhook-Id": b"msg_1"}, BODY, SECRET, NOW),
    ({**headers(), "Webhook-Signature": [sign(SECRET, "msg_1", AT, BODY)]}, BODY, SECRET, NOW),
    *((headers(signature=sign(SECRET, "msg_1", AT, body)), body, SECRET, NOW) for body in (b"[]", b"{", b"\xff", b'{"a":NaN}')),
]


@pytest.mark.parametrize(("given", "body", "secrets", "now"), FALSE)
def test_what_is_not_genuine_is_not_believed(given: dict[str, Any], body: bytes, secrets: Any, now: int) -> None:
    with pytest.raises(NotGenuine):
        opened(given, body, secrets, now=now)


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_C2FVsBQ", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7o!", "ÿ" * 40, None, 5])
def test_a_secret_that_would_sign_for_anybody_is_no_secret(secret: Any) -> None:
    with pytest.raises(ValueError, match="a secret") as raised:
        opened(headers(), BODY, [SECRET, secret], now=NOW)
    assert not isinstance(raised.value, NotGenuine)


def test_the_id_that_was_signed_is_the_one_that_counts() -> None:
    body = b'{"id":"msg_2","type":"pointsman.parked","data":{}}'
    message = opened(headers(signature=sign(SECRET, "msg_1", AT, body)), body, SECRET, now=NOW)
    assert message is not None
    assert message["id"] == "msg_1"


def test_what_cannot_be_read_is_not_taken_for_seen() -> None:
    asked: list[str] = []
    with pytest.raises(NotGenuine):
        opened(headers(signature=sign(SECRET, "msg_1", AT, b"{")), b"{", SECRET, seen=lambda id: bool(asked.append(id)), now=NOW)
    assert asked == []


def test_a_message_is_done_once() -> None:
    known: set[str] = set()

    def seen(id: str) -> bool:
        before = id in known
        known.add(id)
        return before

    assert opened(headers(), BODY, SECRET, seen=seen, now=NOW) is not None
    assert opened(headers(), BODY, SECRET, seen=seen, now=NOW) is None
    with pytest.raises(NotGenuine):
        opened(headers(id="msg_2"), BODY, SECRET, seen=seen, now=NOW)
    assert known == {"msg_1"}, "what is not genuine is not asked about"
