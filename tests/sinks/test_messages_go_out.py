"""Sinks, against a receiver on the loopback interface: what is sent, to which address, and what an answer means."""

import json
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from pointsman.engine.chance import wall_clock
from pointsman.engine.relaying import TAKEN, Answer
from pointsman.kernel.hook import Hook, Secret
from pointsman.kernel.message import Message, named
from pointsman.sinks import outlet, web
from pointsman.types import SECOND, Instant, seconds
from sinks.receiver import Receiver

SECRET, OLD = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
TASK = "01890000-0000-7000-8000-000000000000"


def hook(url: str, kind: Any = "webhook", *, private: bool = True) -> Hook:
    secrets = (Secret(SECRET),) if kind == "webhook" else ()
    return Hook("h", kind, url, ("parked",), None, "https://board.example", private, secrets, "olga", 0)


def message(topic: str = "approval_needed", **members: Any) -> Message:
    data = {"task": TASK, "machine": "letters", "version": 3, "state": "review", **members}
    return named(topic, TASK, 3, 1_767_225_600_000_000, data)


def sent(to: Hook, what: Message | None = None, now: Instant | None = None, **settings: Any) -> Answer:
    sink = outlet(**settings)(to)
    assert sink is not None
    return sink(to, what or message(), wall_clock() if now is None else now)


# ── webhooks ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_webhook_is_signed_as_its_standard_says(receiver: Receiver) -> None:
    """Judged by the standard's own library."""
    assert sent(hook(receiver.url())) == TAKEN
    (post,) = receiver.posts
    read = Webhook(SECRET).verify(post.body, dict(post.headers))
    assert read == json.loads(message().body)
    assert post.headers["webhook-id"] == message().id
    assert post.path == "/hook"
    with pytest.raises(WebhookVerificationError):
        Webhook(OLD).verify(post.body, dict(post.headers))


def test_while_a_secret_is_rotated_both_sign(receiver: Receiver) -> None:
    now = wall_clock()
    rotated = replace(hook(receiver.url()), secrets=(Secret(OLD),)).rotated(SECRET, now, now + seconds(60))
    assert sent(rotated, now=now) == TAKEN
    for secret in (OLD, SECRET):
        assert Webhook(secret).verify(receiver.posts[0].body, dict(receiver.posts[0].headers))
    assert sent(rotated, now=now + seconds(60)) == TAKEN
    assert rotated.signs(now + seconds(60)) == (SECRET,)
    assert len(receiver.posts[1].headers["webhook-signature"].split(" ")) == 1
    assert OLD not in repr(rotated)


def test_every_try_has_the_same_id_and_body_and_its_own_time(receiver: Receiver) -> None:
    now = wall_clock()
    for later in (0, seconds(30)):
        sent(hook(receiver.url()), now=now + later)
    one, two = receiver.posts
    assert (one.headers["webhook-id"], one.body) == (two.headers["webhook-id"], two.body)
    assert int(two.headers["webhook-timestamp"]) - int(one.headers["webhook-timestamp"]) == 30
    assert datetime.fromtimestamp(int(one.headers["webhook-timestamp"]), UTC).timestamp() == now // SECOND


ANSWERS = [
    (200, {}, TAKEN),
    (202, {}, TAKEN),
    (410, {}, Answer("gone", "HTTP 410")),
    (400, {}, Answer("again", "HTTP 400")),
    (500, {}, Answer("again", "HTTP 500")),
    (503, {"Retry-After": "120"}, Answer("again", "HTTP 503", seconds(120))),
    (429, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, Answer("again", "HTTP 429")),
    (429, {"Retry-After": "9" * 30}, Answer("again", "HTTP 429")),
    (302, {"Location": "http://169.254.169.254/latest"}, Answer("again", "HTTP 302, and redirects are not followed")),
]


@pytest.mark.parametrize(("status", "says", "means"), ANSWERS)
def test_what_an_answer_means(receiver: Receiver, status: int, says: dict[str, str], means: Answer) -> None:
    receiver.status, receiver.says = status, says
    assert sent(hook(receiver.url())) == means
    assert len(receiver.posts) == 1


def test_nobody_there_and_an_answer_that_never_ends_are_tried_again(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "TOTAL_S", 0.3)
    receiver.stuck = True
    assert sent(hook(receiver.url())).what == "again"
    url = receiver.url()
    receiver.close()
    assert sent(hook(url)) == Answer("again", "it cannot be connected to")


def test_tls_is_asked_for_in_the_name_of_the_host(receiver: Receiver) -> None:
    """The receiver speaks none: nothing is sent in clear."""
    assert sent(hook(receiver.url().replace("http:", "https:"))).what == "again"
    assert receiver.posts == []


# ── where to ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Resolver:
    """A name server that answers otherwise every time."""

    def __init__(self, *answers: list[str]):
        self.answers, self.asked = list(answers), list[str]()

    def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        return self.answers.pop(0)


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1", "fe80::1%1", "0.0.0.0"])
def test_a_name_that_points_to_an_address_that_is_not_public_gets_nothing(receiver: Receiver, address: str) -> None:
    to = hook(receiver.url("hooks.example.org"), private=False)
    assert sent(to, resolve=Resolver([address])) == Answer("again", "its address is not public")
    assert receiver.posts == []


def test_the_address_that_was_judged_is_the_one_connected_to(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that points to a public address when it is judged, and to this machine a moment later."""
    resolver, connected = Resolver(["93.184.215.14", "127.0.0.1"], ["127.0.0.1"]), list[str]()

    def connect(where: tuple[str, int], timeout: float) -> None:
        connected.append(where[0])
        raise ConnectionRefusedError

    monkeypatch.setattr(web, "create_connection", connect)
    to = hook(receiver.url("hooks.example.org"), private=False)
    assert sent(to, resolve=resolver) == Answer("again", "it cannot be connected to")
    assert (connected, resolver.asked) == (["93.184.215.14"], ["hooks.example.org"])
    assert receiver.posts == []


def test_the_name_is_resolved_once_and_told_to_the_receiver(receiver: Receiver) -> None:
    resolver = Resolver(["127.0.0.1"])
    assert sent(hook(receiver.url("hooks.example.org")), resolve=resolver) == TAKEN
    assert receiver.posts[0].headers["Host"] == f"hooks.example.org:{receiver.port}"
    assert resolver.asked == ["hooks.example.org"]


def test_a_proxy_of_the_environment_is_not_asked(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, receiver.url())
    to = hook("http://hooks.example.org:9/hook", private=False)
    assert sent(to, resolve=Resolver(["127.0.0.1"])) == Answer("again", "its address is not public")
    assert receiver.posts == []


def test_a_name_that_nobody_knows_is_tried_again() -> None:
    assert sent(hook("http://hooks.example.org/"), resolve=Resolver([])) == Answer("again", "its name has no address")


# ── notes for people ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_slack_is_sent_a_link_and_nothing_that_pings(receiver: Receiver) -> None:
    what = message("event:publish", words="<!channel> & <https://evil.example|click>")
    assert sent(hook(receiver.url(), "slack"), what) == TAKEN
    body = json.loads(receiver.posts[0].body)
    link = f"<https://board.example/v1/tasks/{TASK}|task {TASK} of letters, review>"
    said = "&lt;!channel&gt; &amp; &lt;https://evil.example¦click&gt;"
    assert body == {"text": f"{said} (event:publish): {link}", "unfurl_links": False, "unfurl_media": False}


def test_ntfy_is_sent_a_link(receiver: Receiver) -> None:
    assert sent(hook(receiver.url(path="/my-topic"), "ntfy")) == TAKEN
    (post,) = receiver.posts
    assert (post.path, post.headers["Click"]) == ("/my-topic", f"https://board.example/v1/tasks/{TASK}")
    assert post.body.decode() == f"somebody has to decide on a task (approval_needed): task {TASK} of letters, review"


@pytest.mark.parametrize("kind", ["webhook", "slack", "ntfy"])
def test_a_test_message_goes_out(receiver: Receiver, kind: str) -> None:
    assert sent(hook(receiver.url(), kind), named("test", "", 0, 0, {})) == TAKEN


# ── lines, and functions ─────────────────────────────────────────────────────────────────────────────────────────────


def test_cloudevents_are_lines_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "events out.jsonl"
    to = hook(file.as_uri(), "cloudevents")
    assert [sent(to), sent(to, message("parked"))] == [TAKEN, TAKEN]
    first, second = [json.loads(line) for line in file.read_text().splitlines()]
    assert first == {
        "specversion": "1.0",
        "id": message().id,
        "source": "https://board.example",
        "type": "pointsman.approval_needed",
        "subject": TASK,
        "time": "2026-01-01T00:00:00.000000Z",
        "datacontenttype": "application/json",
        "data": {"task": TASK, "machine": "letters", "version": 3, "state": "review"},
    }
    assert second["type"] == "pointsman.parked"
    assert file.stat().st_mode & 0o077 == 0


def test_cloudevents_go_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert sent(hook("stdout:", "cloudevents")) == TAKEN
    assert json.loads(capsys.readouterr().out)["id"] == message().id


def test_a_file_that_cannot_be_written_is_tried_again(tmp_path: Path) -> None:
    assert sent(hook(tmp_path.as_uri(), "cloudevents")) == Answer("again", "it cannot be written (Is a directory)")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert sent(hook(pipe.as_uri(), "cloudevents")).what == "again", "nobody reads it"
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert sent(hook(pipe.as_uri(), "cloudevents")) == Answer("again", "it cannot be written (it is no regular file)")
    finally:
        os.close(reader)


def test_a_function_of_the_program_is_called() -> None:
    got: list[dict[str, Any]] = []
    assert sent(hook("call:mine", "call"), receivers={"mine": got.append}) == TAKEN
    assert got == [{"id": message().id, **json.loads(message().body)}]
    assert outlet()(hook("call:mine", "call")) is None
