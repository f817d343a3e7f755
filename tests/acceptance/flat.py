"""A client of the flat service as existing ones are: plain HTTP/1.1, JSON bodies, one keep-alive connection."""

import http.client
import json
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

TITLE, BRIEF = "Release notes", "Say what changed in version two"
GOOD = "The release notes say what changed in version two, and why it matters."
NOBODY = "01890000-0000-7000-8000-000000000000"


class Answer(NamedTuple):
    status: int
    body: Any
    headers: dict[str, str]

    @property
    def detail(self) -> Any:
        return self.body["detail"]


class Client:
    def __init__(self, url: str):
        at = urlsplit(url)
        assert at.hostname
        assert at.port
        self.at = (at.hostname, at.port)
        self.connection = http.client.HTTPConnection(*self.at, timeout=30)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def send(self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> Answer:
        self.connection.request(method, path, body, {"content-type": "application/json"} | (headers or {}))
        answer = self.connection.getresponse()
        told = answer.read()
        named = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, json.loads(told) if told else None, named)

    def post(self, path: str, /, **members: Any) -> Answer:
        return self.send("POST", path, json.dumps(members).encode())

    def rows(self, path: str, **query: str) -> list[dict[str, Any]]:
        asked = "&".join(f"{name}={quote(value)}" for name, value in query.items())
        answer = self.send("GET", f"{path}?{asked}" if asked else path)
        assert answer.status == 200, answer
        assert set(answer.body) == {"rows"}
        return answer.body["rows"]

    def done(self, path: str, /, **members: Any) -> dict[str, Any]:
        """A POST that must be accepted."""
        answer = self.post(path, **members)
        assert answer.status == 200, answer
        return answer.body

    def bring(self, state: str, owner: str = "ann", title: str = TITLE, brief: str = BRIEF) -> str:
        """A new task, brought to a state by its owner and a reviewer; its id."""
        task: str = self.done("/enqueue", title=title, brief=brief)["id"]
        for path, members in WAY[state]:
            answer = self.done(path, task_id=task, **{name: owner if value == OWNER else value for name, value in members.items()})
        if state != "queued":
            assert answer["state"] == state
        return task


OWNER = "(owner)"
_CLAIM = ("/claim", {"agent_id": OWNER})
_START = ("/start-draft", {"agent_id": OWNER})
_REQUEST = ("/request-approval", {"agent_id": OWNER, "draft": GOOD})
_APPROVE = ("/approve", {"reviewer": "rita"})
_COMPLETE = ("/complete", {"agent_id": OWNER})
_FAIL = ("/fail", {"agent_id": OWNER})

WAY: dict[str, list[tuple[str, dict[str, str]]]] = {
    "queued": [],
    "claimed": [_CLAIM],
    "drafting": [_CLAIM, _START],
    "awaiting_approval": [_CLAIM, _START, _REQUEST],
    "approved": [_CLAIM, _START, _REQUEST, _APPROVE],
    "done": [_CLAIM, _START, _REQUEST, _APPROVE, _COMPLETE],
    "failed": [_CLAIM, _FAIL],
}
STATES = tuple(WAY)
