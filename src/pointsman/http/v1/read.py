"""A request against its operation: every fault of path, query, head and body at once, then who asks."""

from collections.abc import Iterator
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from pointsman.engine.pointsman import Aio
from pointsman.errors import Refusal, Refused, invalid
from pointsman.http.body import read_body
from pointsman.http.caller import caller
from pointsman.http.v1.feed import Feed
from pointsman.http.v1.operation import Asked, Operation
from pointsman.http.v1.parameter import Parameter, told
from pointsman.kernel import ingest
from pointsman.kernel.ingest import Faults
from pointsman.kernel.judges import Judge, compiled

JUDGED_BELOW = ("fields", "args", "tasks")
"""Members whose insides the engine judges, by the machine's own types, and task by task."""


class Reading:
    """How requests for one operation are read."""

    def __init__(self, operation: Operation, aio: Aio, feed: Feed):
        self.operation = operation
        self.aio = aio
        self.feed = feed
        self.judge: Judge | None = None if operation.body is None else compiled(operation.body)
        self.known = {item.name for item in operation.parameters if item.where == "query"}

    async def read(self, request: Request) -> Asked:
        """Raises Refused `malformed`, `unsupported_media`, `invalid` or `identity_mismatch`; TooLarge."""
        body, found = ({}, []) if self.judge is None else self._body(await _bytes(request), self.judge)
        given: dict[str, Any] = {}
        for parameter in self.operation.parameters:
            try:
                given[parameter.name] = told(parameter, _values(parameter, request))
            except Refused as no:
                found += [(str(item["path"]), str(item["message"])) for item in no.failed]
        if found := [*found, *self._unknown(request)]:
            raise invalid(*found[: ingest.LISTED])
        by = caller(None, given["Pointsman-As"] or (), "person")
        return Asked(self.aio, self.feed, by, given, body, request.scope.get("root_path", ""))

    def _body(self, sent: bytes, judge: Judge) -> tuple[dict[str, Any], Faults]:
        body = ingest.parse(sent)
        found: Faults = []
        judge(body, "", found)
        if not isinstance(body, dict):
            return {}, found
        return body, found or ingest.faults({name: value for name, value in body.items() if name not in JUDGED_BELOW})

    def _unknown(self, request: Request) -> Iterator[tuple[str, str]]:
        """An unknown parameter is not named: that would repeat what was sent."""
        if request.url.query and request.query_params.keys() - self.known:
            yield "query", f"takes no parameters but {', '.join(sorted(self.known))}" if self.known else "takes no parameters"


def _values(parameter: Parameter, request: Request) -> list[str]:
    match parameter.where:
        case "path":
            return [request.path_params[parameter.name]]
        case "query":
            return request.query_params.getlist(parameter.name)
        case "header":
            return request.headers.getlist(parameter.name)


async def _bytes(request: Request) -> bytes:
    """The body; what is wrong with it by HTTP's own rules, as a refusal."""
    try:
        return await read_body(request)
    except HTTPException as fault:
        code = "unsupported_media" if fault.status_code == 415 else "malformed"
        raise Refused(Refusal(code, fault.detail)) from None
