"""The machines this process serves and the published versions that tasks began with."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Any

from pointsman.engine.judges import Judges
from pointsman.errors import DefinitionError, Fault, Refusal, Refused
from pointsman.kernel import opinion
from pointsman.kernel.authoring import Machine
from pointsman.kernel.bound import Bound, FunctionKey
from pointsman.kernel.definition import Definition
from pointsman.store import machines
from pointsman.store.database import Database, Tx
from pointsman.store.machines import Published

Functions = dict[FunctionKey, Callable[..., Any]]


class Registry:
    """Bound machines by (name, version). Versions that exist only in the database are loaded when a task needs them."""

    def __init__(self, served: Iterable[type[Machine]], judges: Judges):
        self._judges = judges
        self._functions: dict[str, Functions] = {}
        self._served: list[Definition] = []
        self._bound: dict[tuple[str, int], Bound] = {}
        self._digests: dict[tuple[str, int], str] = {}
        self._complete: dict[str, int] = {}
        for machine in served:
            self._functions.setdefault(machine.definition.name, {}).update(machine.functions)
        for machine in served:
            self._served.append(self._remember(machine.definition).definition)

    @property
    def newest(self) -> Mapping[str, Definition]:
        """The highest version this process serves of each machine."""
        return {definition.name: definition for definition in sorted(self._served, key=lambda item: item.version)}

    def publish(self, db: Database) -> None:
        """Store every served version, unless the number is taken by another structure that has tasks."""
        rows = [(definition, self._sources(definition)) for definition in self._served]
        db.run(lambda tx: [_publish(tx, definition, sources) for definition, sources in rows])

    def bound(self, tx: Tx, name: str, version: int) -> Bound:
        """The interpreter of a version; Refused `machine_unavailable` when this process lacks a function of it."""
        bound = self._bound.get((name, version)) or self._load(tx, name, version)
        if bound.missing:
            missing = ", ".join(bound.missing)
            raise Refused(Refusal("machine_unavailable", f"{name} version {version} needs {missing}, which this process lacks"))
        return bound

    def known(self, name: str, version: int) -> Definition | None:
        """The form of a version that this process has met."""
        bound = self._bound.get((name, version))
        return None if bound is None else bound.definition

    def definition(self, tx: Tx, name: str, version: int) -> Definition:
        """The form of a version, for those who only look; also of one whose functions this process lacks."""
        return (self._bound.get((name, version)) or self._load(tx, name, version)).definition

    def taking_new(self, tx: Tx, name: str) -> Bound:
        """The version that takes new tasks: the highest published number, if it is published as this process has it."""
        self._serves(name)
        newest = machines.newest(tx, name)
        if newest is None:
            raise self._unknown()
        bound = self.bound(tx, name, newest[0])
        if self._digests[name, newest[0]] != newest[1]:
            why = f"{name} version {newest[0]} was published anew with another structure; restart this process with it"
            raise Refused(Refusal("machine_unavailable", why))
        return bound

    def servable(self, tx: Tx, name: str) -> list[Definition]:
        """Every version of a machine that this process can serve, oldest first."""
        self._serves(name)
        newest = machines.newest(tx, name)
        if newest is not None and self._complete.get(name) != newest[0]:
            for row in machines.every(tx):
                if row.name == name and (name, row.version) not in self._bound:
                    self._remember(row.definition)
            self._complete[name] = newest[0]
        return self._whole(name)

    def expected(self, tx: Tx, name: str) -> list[Definition]:
        """What `servable`, which is asked next, will answer unless a version was published since."""
        machines.ahead(tx, name)
        return self._whole(name)

    def _whole(self, name: str) -> list[Definition]:
        own = (bound for (machine, _), bound in list(self._bound.items()) if machine == name and not bound.missing)
        return sorted((bound.definition for bound in own), key=lambda definition: definition.version)

    def _serves(self, name: str) -> None:
        if name not in self._functions:
            raise self._unknown()

    def _unknown(self) -> Refused:
        known = ", ".join(self._functions) or "none"
        return Refused(Refusal("unknown_machine", f"no such machine is served here; served: {known}"))

    def warnings(self, tx: Tx) -> list[str]:
        """What doctor says: missing functions, and bodies that changed under the same version number."""
        found = list[str]()
        for row in machines.every(tx):
            bound = self._bound.get((row.name, row.version)) or self._load(tx, row.name, row.version)
            where = f"machine {row.name} version {row.version}"
            found += [
                f"{where}: this process lacks {missing}" for missing in bound.missing if machines.has_open_tasks(tx, row.name, row.version)
            ]
            now = self._sources(bound.definition)
            changed = [name for name, seen in row.sources.items() if name in now and now[name] != seen]
            found += [f"{where}: the body of {name} changed under the same number; give it a new version" for name in changed]
        return found

    def _load(self, tx: Tx, name: str, version: int) -> Bound:
        row = machines.find(tx, name, version)
        if row is None:
            raise Refused(Refusal("unknown_machine", f"version {version} of {name} was never published"))
        return self._remember(row.definition)

    def _remember(self, definition: Definition) -> Bound:
        bound = Bound(definition, {**self._functions.get(definition.name, {}), **self._opinions(definition)})
        key = (definition.name, definition.version)
        self._digests.setdefault(key, machines.digest_of(definition))
        return self._bound.setdefault(key, bound)

    def _opinions(self, definition: Definition) -> Functions:
        """What asks each judge of a definition, unless it was declared for other words than this process knows."""
        asked = [(check, check.judge) for check in definition.checks if check.judge is not None]
        return {
            ("check", check.function.name, check.function.version): self._judges(judge, check.timeout)
            for check, judge in asked
            if check.function == opinion.reference(check.name, judge)
        }

    def _sources(self, definition: Definition) -> dict[str, str]:
        functions = self._functions.get(definition.name, {})
        keys = {(kind, function.name, function.version) for kind, function in definition.functions()}
        return {
            f"{kind} {name} {version}": _source_hash(functions[kind, name, version])
            for kind, name, version in sorted(keys & functions.keys())
        }


def _publish(tx: Tx, definition: Definition, sources: Mapping[str, str]) -> None:
    row = machines.published(definition, sources, tx.now)
    seen = machines.find(tx, definition.name, definition.version)
    if seen is None:
        machines.add(tx, row)
    elif seen.digest != row.digest:
        _replace(tx, definition, seen, row)


def _replace(tx: Tx, definition: Definition, seen: Published, row: Published) -> None:
    if machines.has_tasks(tx, seen.name, seen.version):
        message = f"version {seen.version} is published with another structure and has tasks; raise `version`"
        raise DefinitionError(seen.name, [Fault("version_taken", message, f"machine {seen.name}", definition.line)])
    if not machines.replace(tx, row, seen.digest):
        raise Refused(Refusal("store_busy", "another process is publishing this machine; start again"))


def _source_hash(function: Callable[..., Any]) -> str:
    """A function whose source cannot be found is known by its byte code."""
    try:
        text = inspect.getsource(function).encode()
    except (OSError, TypeError):
        text = getattr(getattr(function, "__code__", None), "co_code", b"")
    return sha256(text).hexdigest()
