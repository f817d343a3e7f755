"""A broad `except` hides faults, so each place that has one stands here with its reason."""

import ast

from house.source import functions, trees

ALLOWED: dict[str, str] = {}
"""module:function -> why nothing narrower would do."""


def test_every_broad_except_has_its_reason() -> None:
    found = {f"{module}:{name}" for module, tree in trees().items() for name, node in functions(tree) if _catches_broadly(node)}
    assert found == ALLOWED.keys()


def _catches_broadly(function: ast.AST) -> bool:
    return any(isinstance(node, ast.ExceptHandler) and _broad(node.type) for node in ast.walk(function))


def _broad(kind: ast.expr | None) -> bool:
    if kind is None:
        return True
    names = {node.id for node in ast.walk(kind) if isinstance(node, ast.Name)}
    return bool(names & {"Exception", "BaseException"})
