"""Who may propose an event: rules combine with `&`, `|` and `~`, and are data.

`Rule("and", (a, b))`, `Rule("not", (a,))`, `Rule("role", ("reviewer",))`, `Rule("owner")`. A rule never becomes
a bool: `owner or role("x")` would silently drop a side, so it raises instead.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pointsman.types import Json

ANONYMOUS = "anonymous"


@dataclass(frozen=True, slots=True)
class Principal:
    """Who acts. `roles` of None means every role (open mode and embedding programs). `root` is the last controller
    up, the one whose contributions count; names compare case-folded."""

    name: str
    kind: str = "agent"
    roles: frozenset[str] | None = None
    root: str = ""
    auth: str = "embedded"

    def has(self, role: str) -> bool:
        return self.roles is None or role in self.roles

    @property
    def root_key(self) -> str:
        return (self.root or self.name).casefold()


@dataclass(frozen=True, slots=True)
class Rule:
    op: str
    args: tuple[Any, ...] = ()

    def __and__(self, other: "Rule") -> "Rule":
        return Rule("and", (self, other))

    def __or__(self, other: "Rule") -> "Rule":
        return Rule("or", (self, other))

    def __invert__(self) -> "Rule":
        return Rule("not", (self,))

    def __bool__(self) -> bool:
        raise TypeError("combine rules with &, | and ~; `and`, `or` and `not` would drop one of them")

    def as_json(self) -> Json:
        return [self.op, *(arg.as_json() if isinstance(arg, Rule) else arg for arg in self.args)]


owner = Rule("owner")
person = Rule("person")
contributor = Rule("contributor")
anyone = Rule("anyone")


def role(name: str) -> Rule:
    return Rule("role", (name,))


def from_json(form: Any) -> Rule:
    op, *args = form
    return Rule(op, tuple(from_json(arg) if isinstance(arg, list) else arg for arg in args))


def leaves(rule: Rule) -> Iterator[Rule]:
    """Every rule below that is not a combination."""
    if rule.op in ("and", "or", "not"):
        for arg in rule.args:
            yield from leaves(arg)
    else:
        yield rule


def mentions(rule: Rule, op: str) -> bool:
    return any(leaf.op == op for leaf in leaves(rule))


def admits(rule: Rule, who: Principal, *, is_owner: bool, is_contributor: bool) -> bool:
    """Evaluate a rule. Ownership and contribution are facts of the task, so they come in as arguments."""
    match rule.op:
        case "anyone":
            return True
        case "owner":
            return is_owner
        case "person":
            return who.kind == "person"
        case "contributor":
            return is_contributor and who.name != ANONYMOUS
        case "role":
            return who.has(rule.args[0])
        case "and":
            return all(admits(arg, who, is_owner=is_owner, is_contributor=is_contributor) for arg in rule.args)
        case "or":
            return any(admits(arg, who, is_owner=is_owner, is_contributor=is_contributor) for arg in rule.args)
        case "not":
            return not admits(rule.args[0], who, is_owner=is_owner, is_contributor=is_contributor)
        case _:
            raise ValueError(f"no rule is called {rule.op!r}")


def says(rule: Rule) -> str:
    """A rule in words, for refusals, pages and tool descriptions."""
    match rule.op:
        case "and":
            return " and ".join(_part(arg) for arg in rule.args)
        case "or":
            return " or ".join(says(arg) for arg in rule.args)
        case "not":
            return f"not {_part(rule.args[0])}"
        case "role":
            return f"role {rule.args[0]}"
        case "owner":
            return "the owner"
        case "contributor":
            return "a contributor"
        case _:
            return rule.op


def _part(rule: Rule) -> str:
    return f"({says(rule)})" if rule.op == "or" else says(rule)
