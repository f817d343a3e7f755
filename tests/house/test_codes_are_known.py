"""Every refusal in the source uses a code of the table, and the page of codes shows the table."""

import ast

from house.source import ROOT, trees
from pointsman.errors import CODES

BUILDERS = {"Refusal", "StoreError"}


def test_every_code_in_the_source_is_in_the_table() -> None:
    used = {code for tree in trees().values() for node in ast.walk(tree) if (code := _code(node)) is not None}
    assert used
    assert used <= CODES.keys()


def test_every_code_is_documented() -> None:
    page = (ROOT / "docs" / "errors.md").read_text()
    assert [code for code in CODES if f"| `{code}` |" not in page] == []


def _code(node: ast.AST) -> str | None:
    """The literal code of a call that builds a refusal."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BUILDERS and node.args:
        first = node.args[0]
        return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None
    return None
