"""Answers of `/v1`: JSON with the version as a strong entity tag, and pages with the cursor of the next."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from starlette.responses import Response

from pointsman.engine.views import task_json
from pointsman.http.answer import reply
from pointsman.http.v1 import cursor
from pointsman.http.v1.operation import Asked
from pointsman.kernel.task import Task

T = TypeVar("T")


def etag(version: int) -> str:
    return f'"{version}"'


def of_task(task: Task, status: int = 200, **headers: str) -> Response:
    told = {"etag": etag(task.version), **headers} | ({"idempotent-replayed": "true"} if task.replayed else {})
    return reply(task_json(task), status, told)


def unless_seen(asked: Asked, task: Task) -> Response:
    """The task, or 304 for a reader who has this version."""
    seen = asked.given["If-None-Match"] or ""
    tags = {tag.strip().removeprefix("W/") for tag in seen.split(",")}
    if "*" in tags or etag(task.version) in tags:
        return Response(status_code=304, headers={"etag": etag(task.version)})
    return of_task(task)


def page(asked: Asked, path: str, items: Sequence[T], place: Callable[[T], list[Any]]) -> tuple[Sequence[T], str | None]:
    """The items of a page, of which one more than fits was read, and the cursor of the page after it."""
    limit: int = asked.given["limit"]
    if len(items) <= limit:
        return items, None
    return items[:limit], cursor.write(path, asked.given, place(items[limit - 1]))
