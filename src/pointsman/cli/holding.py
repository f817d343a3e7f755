"""`pointsman task renew|release|cancel|unpark`: an owner holds its task for longer or gives it back; a task is taken out of
work for good, or put back."""

from typing import Annotated

import typer

from pointsman.app import opened
from pointsman.cli import options, output, views
from pointsman.cli.acting import named, told
from pointsman.config import settings

LeaseSeconds = Annotated[float | None, typer.Option("--lease", metavar="SECONDS", help="How long from now; else the state's own time.")]
Why = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for the record.", show_default=False)]
Deferred = Annotated[bool, typer.Option("--deferred", help="It counts as no attempt: somebody else's service is down.")]
Error = Annotated[bool, typer.Option("--error", help="The work failed: the task rests before it is tried again.")]
Cascade = Annotated[bool, typer.Option("--cascade", help="Cancel its open children too.")]
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
    deferred: Deferred = False,
    error: Error = False,
    idempotency_key: options.IdempotencyKey = None,
    db: options.Db = None,
    work: options.Work = None,
    json: options.Json = None,
) -> None:
    """Give a task back. It moves as if its lease had run out, and keeps all its fields.

    It counts as an attempt, and too many of those park the task: say --deferred when that was nobody's fault, --error when
    the work failed.
    """
    config = settings(db=db, work=work, json=json, **{"as": name})
    with opened(config) as pm:
        task = pm.release(
            id, by=named(config), epoch=epoch, reason=reason, counts=not deferred, error=error, idempotency_key=idempotency_key
        )
        told(pm, config, "released", task)


def cancel(
    id: options.TaskId,
    reason: Why,
    cascade: Cascade = False,
    name: options.As = None,
    epoch: options.Epoch = None,
    expect_version: options.ExpectVersion = None,
    idempotency_key: options.IdempotencyKey = None,
    db: options.Db = None,
    work: options.Work = None,
    json: options.Json = None,
) -> None:
    """Take no further step of a task; for its owner, or an operator. Tasks that wait for it go by the fate they were given."""
    config = settings(db=db, work=work, json=json, **{"as": name})
    with opened(config) as pm:
        report = pm.cancel(
            id,
            by=named(config),
            reason=reason,
            cascade=cascade,
            epoch=epoch,
            expect_version=expect_version,
            idempotency_key=idempotency_key,
        )
    if config.json:
        output.as_json(report.as_json())
    else:
        output.line(f"cancelled: {views.summary(report.task)}")
        views.happened(report.report)


def unpark(
    id: options.TaskId,
    reason: Why,
    name: options.As = None,
    expect_version: options.ExpectVersion = None,
    idempotency_key: options.IdempotencyKey = None,
    db: options.Db = None,
    work: options.Work = None,
    json: options.Json = None,
) -> None:
    """Put a parked task back into work, its attempts begun anew; for an operator."""
    config = settings(db=db, work=work, json=json, **{"as": name})
    with opened(config) as pm:
        task = pm.unpark(id, by=named(config), reason=reason, expect_version=expect_version, idempotency_key=idempotency_key)
        told(pm, config, "unparked", task)
