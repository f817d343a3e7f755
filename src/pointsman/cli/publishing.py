"""`pointsman machine diff` and `publish`: a work file beside what the database has published."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from pointsman.app import opened
from pointsman.cli import options, output
from pointsman.config import settings
from pointsman.engine.pointsman import Pointsman
from pointsman.errors import FAILED, Refusal, Refused
from pointsman.kernel.chain import canonical, digest, parse
from pointsman.kernel.definition import Definition
from pointsman.kernel.exported import export
from pointsman.store import machines
from pointsman.store.database import Tx
from pointsman.store.machines import Published
from pointsman.types import Json

PARTS = {"fields": "field", "states": "state", "events": "event", "checks": "check", "computed": "computed", "proves": "proof"}


@dataclass(frozen=True, slots=True)
class Change:
    """One part of a machine that is not what it was; `was` or `now` is None where it was added or taken away."""

    part: str
    name: str
    was: Mapping[str, Json] | None
    now: Mapping[str, Json] | None

    def __str__(self) -> str:
        sign = "~" if self.was is not None and self.now is not None else "+" if self.was is None else "-"
        moved = [name for name in self.now or () if self.was is not None and self.now is not None and self.now[name] != self.was.get(name)]
        return f"{sign} {self.part} {self.name}" + (f": {', '.join(moved)}" if moved else "")


@dataclass(frozen=True, slots=True)
class Compared:
    """A served machine beside the published version it is to be compared with: its own number, else the highest."""

    definition: Definition
    published: int | None
    changes: Sequence[Change]
    taken: bool

    @property
    def says(self) -> str:
        name = f"{self.definition.name}, version {self.definition.version}"
        if self.published is None:
            return f"{name}: not published yet"
        if self.published != self.definition.version:
            return f"{name}: not published yet; against version {self.published}:"
        if not self.changes:
            return f"{name}: published as it is"
        return f"{name}: another structure is published under this number" + ("; it has open tasks, so raise `version`" * self.taken) + ":"

    def as_json(self) -> dict[str, Any]:
        changes = [{"part": item.part, "name": item.name, "was": item.was, "now": item.now} for item in self.changes]
        plain = {"name": self.definition.name, "version": self.definition.version, "published": self.published}
        return {**plain, "publishable": not self.taken, "changes": changes}


def diff(work: options.WorkFile = None, machine: options.OfMachine = None, db: options.Db = None, json: options.Json = None) -> None:
    """Compare the machines of WORK.PY with those published in the database: what was added, changed and taken away.

    Exit status 1 when they could not be published, because their number is taken and tasks of it are open.
    """
    config = settings(work=work, db=db, json=json)
    with opened(config, publish=False) as pm:
        found = [item for item in compared(pm) if machine in (None, item.definition.name)]
    if not found:
        raise Refused(Refusal("unknown_machine", f"{config.work or 'the built-in module'} declares no machine of that name"))
    if config.json:
        output.as_json({"machines": [item.as_json() for item in found]})
    else:
        for item in found:
            output.line(item.says)
            output.findings([f"  {change}" for change in item.changes], "") if item.changes else None
    if any(item.taken for item in found):
        raise typer.Exit(FAILED)


def publish(work: options.WorkFile = None, db: options.Db = None, json: options.Json = None) -> None:
    """Publish the machines of WORK.PY in the database, as every command that changes something does before it does.

    New tasks begin on the highest version published; a task keeps the version it began with.
    """
    config = settings(work=work, db=db, json=json)
    with opened(config, publish=False) as pm:
        before = compared(pm)
    opened(config).close()
    new = [item for item in before if item.changes or item.published != item.definition.version]
    if config.json:
        output.as_json({"published": [{"name": item.definition.name, "version": item.definition.version} for item in new]})
    else:
        output.findings([f"published {item.definition.name}, version {item.definition.version}" for item in new], "nothing new to publish")


def compared(pm: Pointsman) -> list[Compared]:
    return pm.engine.db.read(lambda tx: [_compared(tx, definition) for definition in pm.machines.values()])


def _compared(tx: Tx, definition: Definition) -> Compared:
    newest = machines.newest(tx, definition.name)
    base = machines.find(tx, definition.name, definition.version) or (machines.find(tx, definition.name, newest[0]) if newest else None)
    if base is None:
        return Compared(definition, None, (), taken=False)
    now = parse(canonical(export(definition)))
    changes = () if digest("machine", now) == base.digest else tuple(differences(parse(base.form), now))
    return Compared(definition, base.version, changes, taken=_taken(tx, base, definition, changes))


def _taken(tx: Tx, base: Published, definition: Definition, changes: Sequence[Change]) -> bool:
    return bool(changes) and base.version == definition.version and machines.has_tasks(tx, base.name, base.version)


def differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Change]:
    """What differs between two forms, part by part, in the order of the new one and then of what is gone."""
    if was["doc"] != now["doc"]:
        yield Change("text", "doc", {"doc": was["doc"]}, {"doc": now["doc"]})
    for key, part in PARTS.items():
        before, after = ({_name(item): item for item in form[key]} for form in (was, now))
        for name in [*after, *(name for name in before if name not in after)]:
            if before.get(name) != after.get(name):
                yield Change(part, name, before.get(name), after.get(name))


def _name(item: Mapping[str, Any]) -> str:
    """A part's name; a proof goes by what it says."""
    return item["name"] if "name" in item else f"{item['kind']}({item['state']}, {item['event']})"
