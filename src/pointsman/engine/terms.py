"""What a creator says of a task besides its fields, read and judged: every fault with its path."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast, get_args

from pointsman.engine.ordering import moment, names
from pointsman.errors import invalid
from pointsman.kernel.graph import MOST_AT_ONCE, MOST_UPSTREAMS, sequence
from pointsman.kernel.ingest import LISTED, Faults, identifier, member
from pointsman.kernel.ingest import faults as ingest_faults
from pointsman.kernel.task import Dependency, Fate, Rule
from pointsman.kernel.terms import Terms
from pointsman.types import task_id

LARGEST_PRIORITY = 1_000
FATES: tuple[Fate, ...] = get_args(Fate)
REF = "#"
"""Before the ref of another task of the same batch, where the id of one that exists could stand."""
_TERMS = ("priority", "tags", "needs", "run_at", "dedupe_key", "blocked_by")
_ITEM = ("ref", "machine", "fields", *_TERMS)


def read(given: Mapping[Any, Any], parent: str | None, path: str = "", refs: bool = False) -> tuple[Terms, Faults]:
    """The terms among the members of an object that was asked for."""
    found = priority(given.get("priority", 0), f"{path}priority") + dedupe_key(given.get("dedupe_key"), f"{path}dedupe_key")
    tags, of_tags = names(given.get("tags"), f"{path}tags")
    needs, of_needs = names(given.get("needs"), f"{path}needs")
    run_at, of_time = moment(given.get("run_at"), f"{path}run_at")
    blocked_by, of_others = dependencies(given.get("blocked_by"), f"{path}blocked_by", refs)
    terms = Terms(given.get("priority", 0), tags, needs, run_at, given.get("dedupe_key"), parent, blocked_by)
    return terms, [*found, *of_tags, *of_needs, *of_time, *of_others]


def priority(value: Any, path: str = "priority") -> Faults:
    if type(value) is not int:
        return [(path, "has the wrong type")]
    fits = -LARGEST_PRIORITY <= value <= LARGEST_PRIORITY
    return [] if fits else [(path, f"must be from {-LARGEST_PRIORITY} to {LARGEST_PRIORITY}")]


def dedupe_key(value: Any, path: str = "dedupe_key") -> Faults:
    return [] if value is None else identifier(value, path)


def named(value: Any, path: str) -> tuple[str, Faults]:
    """A task's id, in its one spelling."""
    try:
        return task_id(value), []
    except ValueError as error:
        return "", [(path, str(error))]


def dependencies(value: Any, path: str = "blocked_by", refs: bool = False) -> tuple[tuple[Dependency, ...], Faults]:
    """Tasks to wait for, each `{"task": id, "on_failure": fate}`; with `refs`, a task may be one of the batch, as `#ref`."""
    if value is None:
        return (), []
    if not isinstance(value, list | tuple):
        return (), [(path, "must be a list")]
    if len(value) > MOST_UPSTREAMS:  # pyright: ignore[reportUnknownArgumentType]
        return (), [(path, f"must have at most {MOST_UPSTREAMS} items")]
    read = [_dependency(item, f"{path}[{index}]", refs) for index, item in enumerate(value)]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    found = [fault for _, faults in read for fault in faults]
    seen = set[str]()
    for index, (dependency, faults) in enumerate(read):
        if not faults and dependency.task in seen:
            found.append((f"{path}[{index}].task", "is named twice"))
        seen.add(dependency.task)
    return tuple(dependency for dependency, _ in read), found


def _dependency(item: Any, path: str, refs: bool) -> tuple[Dependency, Faults]:
    if isinstance(item, Dependency):
        item = {"task": item.task, "on_failure": item.on_failure}
    if not isinstance(item, Mapping):
        return Dependency(""), [(path, "must be an object with a task and what its failing means")]
    given = cast(Mapping[Any, Any], item)
    found = _unknown(given, ("task", "on_failure"), path)
    task, fate = given.get("task"), given.get("on_failure", "block")
    if refs and isinstance(task, str) and task.startswith(REF):
        found += [(f"{path}.task", message) for _, message in identifier(task[len(REF) :], "")]
    else:
        task, faults = named(task, f"{path}.task")
        found += faults
    if fate not in FATES:
        found.append((f"{path}.on_failure", f"must be one of {', '.join(FATES)}"))
    return Dependency(task, fate), found


def _unknown(given: Mapping[Any, Any], known: Sequence[str], path: str) -> Faults:
    return [(member(path, str(name)), "is not known here") for name in given if name not in known]


# ── batches ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Item:
    """A task of a batch as it was asked for. `blocked_by` of its terms may name other items as `#ref`."""

    path: str
    ref: str
    machine: str
    fields: Any
    terms: Terms


def listed(tasks: Any) -> Sequence[Any]:
    """The items of a list that one call may bring."""
    if not isinstance(tasks, list | tuple):
        raise invalid(("tasks", "must be a list"))
    items = cast(Sequence[Any], tasks)
    if not 1 <= len(items) <= MOST_AT_ONCE:
        raise invalid(("tasks", f"must have from 1 to {MOST_AT_ONCE} items"))
    return items


def batch(tasks: Any, parent: str | None, machine: str | None) -> list[Item]:
    """The items in the order in which they can be made; Refused `invalid` with every fault. `machine` is for those that
    name none."""
    read = [_item(item, index, parent, machine) for index, item in enumerate(listed(tasks))]
    items, found = [item for item, _ in read], [fault for _, faults in read for fault in faults]
    found += _refs(items)
    if found:
        raise invalid(*found[:LISTED])
    order, cycle = sequence({item.ref: _before(item) for item in items})
    if cycle:
        raise invalid(("tasks", "wait for one another in a cycle: " + " → ".join(cycle)))
    by_ref = {item.ref: item for item in items}
    return [by_ref[ref] for ref in order]


def alike(tasks: Any, machine: str, given: Mapping[str, Any]) -> list[Item]:
    """Items of one machine that have all but their fields in common; Refused `invalid` with every fault."""
    terms, found = read(given, None)
    several = listed(tasks)
    for index, fields in enumerate(several):
        path = f"tasks[{index}].fields"
        found += ingest_faults(fields, path)
        if type(fields) is not dict:
            found.append((path, "must be an object"))
    if found:
        raise invalid(*found[:LISTED])
    return [Item(f"tasks[{index}]", _ref(None, index), machine, fields, terms) for index, fields in enumerate(several)]


def said(terms: Terms) -> dict[str, Any]:
    """What terms ask for, as part of a request."""
    return {"priority": terms.priority, "tags": list(terms.tags), "needs": list(terms.needs), "run_at": terms.run_at}


def _before(item: Item) -> list[str]:
    return [dependency.task for dependency in item.terms.blocked_by if dependency.task.startswith(REF)]


def _item(item: Any, index: int, parent: str | None, machine: str | None) -> tuple[Item, Faults]:
    path = f"tasks[{index}]"
    if not isinstance(item, dict):
        return Item(path, _ref(None, index), "", {}, Terms()), [(path, "must be an object")]
    given = cast(dict[Any, Any], item)
    terms, faults = read(given, parent, f"{path}.", refs=True)
    found = _unknown(given, _ITEM, path) + faults + ingest_faults(given.get("fields"), f"{path}.fields")
    if not isinstance(given.get("fields"), dict):
        found.append((f"{path}.fields", "must be an object"))
    ref, named_machine = given.get("ref"), given.get("machine")
    if ref is not None:
        found += identifier(ref, f"{path}.ref")
    if (wanted := machine if named_machine is None else named_machine) is None:
        found.append((f"{path}.machine", "is required where several machines are served"))
    elif not isinstance(wanted, str):
        found.append((f"{path}.machine", "must be text"))
    return Item(path, _ref(ref, index), str(wanted), given.get("fields"), terms), found


def _refs(items: Sequence[Item]) -> Faults:
    """Two items of one ref, and refs that no item has."""
    found, seen = Faults(), set[str]()
    for item in items:
        if item.ref in seen:
            found.append((f"{item.path}.ref", "is another item's ref too"))
        seen.add(item.ref)
    for item in items:
        for index, dependency in enumerate(item.terms.blocked_by):
            if dependency.task.startswith(REF) and dependency.task not in seen and not identifier(dependency.task[len(REF) :], ""):
                found.append((f"{item.path}.blocked_by[{index}].task", "is no ref of this batch"))
    return found


def refs(tasks: Sequence[Mapping[str, Any]]) -> list[str]:
    """The refs of well-formed items, in the order of the items."""
    return [_ref(item.get("ref"), index) for index, item in enumerate(tasks)]


def _ref(given: Any, index: int) -> str:
    """An item without a ref has one that none can name."""
    return f"{REF}{given}" if isinstance(given, str) else f"{REF}{REF}{index}"


def rule(value: Any, tasks: int) -> Rule | None:
    """How a parent joins the children of a batch."""
    if value is None or value in ("all", "any"):
        return value
    if type(value) is not int or not 1 <= value <= tasks:
        raise invalid(("join", f"must be all, any, or how many of the {tasks} tasks have to be done"))
    return value
