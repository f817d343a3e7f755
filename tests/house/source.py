"""The package's source as the house tests read it."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "pointsman"


@cache
def trees() -> dict[str, ast.Module]:
    """Every module of the package, by its path below src."""
    return {str(path.relative_to(PACKAGE.parent)): ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}


def strings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """String constants with their lines; docstrings and other bare strings are prose and left out."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.lineno, node.value


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Every function with its dotted name inside the module."""

    def walk(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.AST]]:
        for child in ast.iter_child_nodes(node):
            named = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            name = f"{prefix}{child.name}" if named else prefix
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield name, child
            yield from walk(child, f"{name}." if named else prefix)

    yield from walk(tree, "")
