"""Limits inside the deciding transaction: what is left is counted under a lock, and what was taken is kept with the step."""

from dataclasses import replace

from pointsman.kernel import limits
from pointsman.kernel.case import Case
from pointsman.kernel.definition import Definition
from pointsman.kernel.steps import Accept
from pointsman.store import limits as stored
from pointsman.store.database import Tx


def counted(tx: Tx, case: Case, *, deciding: bool) -> Case:
    """The question, with what others use of the limits of its event. Whoever decides holds each of them until the end of
    the unit, in one order, so that no two can take the last of it, and judges by a time read after it may have waited for
    them; whoever only looks holds none."""
    if not case.event.limits:
        return case
    fields = limits.fields_of(case)
    wanted = sorted(((limit.name, limits.subject(limit, fields)), limit) for limit in case.event.limits)
    if deciding:
        for (name, subject), _ in wanted:
            stored.lock(tx, name, subject)
        case = replace(case, now=max(case.now, tx.now))  # behind a lapse that was recorded on the way
    used = {name: stored.used(tx, limit, subject, case.now, case.task.id) for (name, subject), limit in wanted}
    return replace(case, used=used)


def keep(tx: Tx, definition: Definition, accept: Accept) -> None:
    """Write what an accepted step takes, and give back the place of a task that nobody is at any more."""
    if not definition.limits:
        return
    after, event = accept.after, definition.event.get(accept.event)
    if accept.kind == "acquire" or not limits.has_place(definition, after):
        stored.free(tx, after.id)
    if event is not None and accept.takes:
        stored.add(tx, after.id, after.version, limits.uses(event, after))
