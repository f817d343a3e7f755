"""Schedules: when a cron expression is due, in a time zone whose clocks are put forward and back.

Daylight saving, as Debian's cron has it: a moment that the clocks skip comes right after the gap; one that they show twice comes
the first time only. An expression whose minute or hour begins with `*` is held against the clocks as they run: of an hour that is
skipped it has nothing, and one that is shown twice it has twice. Once told, a due moment is an instant, whatever becomes of the
rules of its zone.
"""

from datetime import UTC, datetime, timedelta
from typing import get_args
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from pointsman.kernel.chain import canonical
from pointsman.kernel.definition import Misfire, Schedule
from pointsman.kernel.ingest import identifier
from pointsman.kernel.rules import ANONYMOUS
from pointsman.types import EPOCH, Duration, Instant, iso, minutes

MEMBERS = 5
GRACE: Duration = minutes(1)
"""How late a task may be made before its moment counts as missed."""


def faults(schedule: Schedule) -> list[str]:
    """What is wrong with a schedule, its fields apart."""
    found = [] if schedule.misfire in get_args(Misfire) else ['misfire is "once" or "skip"']
    found += [f"by: {message}" for _, message in identifier(schedule.by, "by")]
    if isinstance(schedule.by, str) and schedule.by.casefold() == ANONYMOUS:  # pyright: ignore[reportUnnecessaryIsInstance]
        found.append("by: this name is reserved")
    return found + _of_time(schedule)


def _of_time(schedule: Schedule) -> list[str]:
    if not isinstance(schedule.tz, str) or not _is_zone(schedule.tz):  # pyright: ignore[reportUnnecessaryIsInstance]
        return ["tz is the name of a time zone, as in Europe/Berlin, that this machine knows"]
    if not isinstance(schedule.cron, str) or len(schedule.cron.split()) != MEMBERS:  # pyright: ignore[reportUnnecessaryIsInstance]
        return ['write minute, hour, day of month, month and day of week, as in Schedule("0 3 * * *")']
    try:
        following(schedule, 0)
    except CronSimError as error:
        return [f"the cron expression cannot be read: {str(error).lower()}"]
    except StopIteration:
        return ["the cron expression names no moment that ever comes"]
    return []


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return False
    return True


def following(schedule: Schedule, after: Instant) -> Instant:
    """The first due moment after an instant."""
    there = (EPOCH + timedelta(microseconds=after)).astimezone(ZoneInfo(schedule.tz))
    moments = (_instant(moment) for moment in CronSim(schedule.cron, there))
    return next(moment for moment in moments if moment > after)


def _instant(moment: datetime) -> Instant:
    return (moment.astimezone(UTC) - EPOCH) // timedelta(microseconds=1)


def spec(schedule: Schedule) -> str:
    """A schedule as text. One that is spelled otherwise begins anew."""
    return canonical([schedule.cron, schedule.tz, dict(schedule.fields), schedule.by, schedule.misfire])


def missed(schedule: Schedule, due: Instant, now: Instant) -> bool:
    """Whether the task of a moment is left out, since it would come too late."""
    return schedule.misfire == "skip" and now - due > GRACE


def dedupe_key(name: str, due: Instant) -> str:
    """What the task of a moment is called, so that there is one."""
    return f"schedule:{name}:{iso(due)}"
