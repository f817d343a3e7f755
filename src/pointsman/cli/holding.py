"""`pointsman task renew|release`: an owner holds its task for longer, or gives it back."""

from typing import Annotated

import typer

from pointsman.app import opened
from pointsman.cli import options
from pointsman.cli.acting import named, told
from pointsman.config import settings

LeaseSeconds = Annotated[float | None, typer.Option("--lease", metavar="SECONDS", help="How long from now; else the state's own time.")]
Reason = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why, for the record.")]


def renew(
    id: options.TaskId,
    name: options.As = None,
    epoch: options.Epoch = None,
    lease: LeaseSeconds = None,
    db: options.Db = None,
    work: options.Work = None,
    json: options.Json = None,
) -> None:
    """Hold a task for longer without another call. Leaves no entry.

    Every accepted call of the owner renews too; this is for long silent work.
    """
    config = settings(db=db, work=work, json=json, **{"as": name})
    with opened(config) as pm:
        told(pm, config, "renewed", pm.renew(id, by=named(config), epoch=epoch, lease_s=lease))


def release(
    id: options.TaskId,
    name: options.As = None,
    epoch: options.Epoch = None,
    reason: Reason = None,
    idempotency_key: options.IdempotencyKey = None,
    db: options.Db = None,
    work: options.Work = None,
    json: options.Json = None,
) -> None:
    """Give a task back. It moves as if its lease had run out, and keeps all its fields."""
    config = settings(db=db, work=work, json=json, **{"as": name})
    with opened(config) as pm:
        told(pm, config, "released", pm.release(id, by=named(config), epoch=epoch, reason=reason, idempotency_key=idempotency_key))
