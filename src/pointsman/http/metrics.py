"""Figures of a server in Prometheus' text format: counted here, or read from the store when they are asked for."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pointsman.engine.reporting import Figures

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
ACCEPTED = "accepted"
METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})


class Tally:
    """What this process has answered since it began: requests by route, method and status, decisions by door and
    code."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.decisions: Counter[tuple[str, str]] = Counter()

    def decided(self, door: str, code: str = ACCEPTED) -> None:
        self.decisions[door, code] += 1


class Counting:
    """ASGI middleware that counts every request by the route that took it; one that no route took has none."""

    def __init__(self, app: ASGIApp, tally: Tally):
        self.app = app
        self.requests = tally.requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        status = 500

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, noting)
        finally:
            route, method = scope.get("route"), scope["method"]
            self.requests[route.path if route else "", method if method in METHODS else "", status] += 1
        return None


def text(tally: Tally, figures: Figures) -> str:
    return "\n".join(_lines(tally, figures)) + "\n"


def _lines(tally: Tally, figures: Figures) -> Iterator[str]:
    yield from _family("requests_total", "counter", "Answered requests by route.", _requests(tally))
    yield from _family("decisions_total", "counter", "Decisions by door and code.", _decisions(tally))
    yield from _family("feed_number", "gauge", "The last number of the feed.", [({}, figures.feed)])
    yield from _family("proposals_pending", "gauge", "Proposals whose checks are running.", [({}, figures.pending)])
    waiting = [({"machine": machine, "state": state}, count) for machine, state, count in figures.waiting]
    yield from _family("tasks_waiting", "gauge", "Open tasks that nobody owns.", waiting)


def _requests(tally: Tally) -> Iterator[tuple[Mapping[str, str], int]]:
    for (route, method, status), count in sorted(tally.requests.items()):
        yield {"route": route, "method": method, "status": str(status)}, count


def _decisions(tally: Tally) -> Iterator[tuple[Mapping[str, str], int]]:
    for (door, code), count in sorted(tally.decisions.items()):
        yield {"door": door, "code": code}, count


def _family(name: str, kind: str, said: str, samples: Iterable[tuple[Mapping[str, str], int]]) -> Iterator[str]:
    yield f"# HELP pointsman_{name} {said}"
    yield f"# TYPE pointsman_{name} {kind}"
    for labels, value in samples:
        told = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        yield f"pointsman_{name}{{{told}}} {value}" if told else f"pointsman_{name} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
