"""A broad `except` hides faults, so each place that has one stands here with its reason."""

import ast

from house.source import functions, trees

ALLOWED = {
    "pointsman/app.py:_imported": "the author's work file runs there, and whatever it raises is told to its author",
    "pointsman/engine/checks.py:Checks._run": "the store may fail under a check, and whoever waits for its judgement must hear of it",
    "pointsman/engine/pointsman.py:Pointsman.__init__": "the database just opened is closed again, and the error goes on",
    "pointsman/engine/relaying.py:Relay._answer": "a sink of an embedding program may raise anything, and then it took nothing",
    "pointsman/engine/service.py:Service._loop": "a duty that ended would be missed by nobody, and its next turn may go well",
    "pointsman/engine/steps.py:adrive": "whatever a step raises is thrown into the verb that waits for it",
    "pointsman/engine/steps.py:drive": "whatever a step raises is thrown into the verb that waits for it",
    "pointsman/integrations/judge.py:Hearing.until_clear": "what a service sends may make the libraries that read it raise anything",
    "pointsman/engine/verify.py:_judged": "a tampered row may break anything that reads it, and is to be named",
    "pointsman/engine/tables.py:_looked": "a tampered row may break anything that reads it, and is to be named",
    "pointsman/kernel/bound.py:Bound._computed": "an author's function may raise anything, and then the change is refused",
    "pointsman/kernel/bound.py:Bound.guard": "an author's guard may raise anything, and then it says no",
    "pointsman/kernel/bound.py:Bound.judge": "an author's check may raise anything, and then it did not pass",
    "pointsman/store/sqlite_commit.py:Committer._run": "whatever a unit raises is its caller's answer and not the end of the writer",
    "pointsman/store/sqlite_readers.py:Readers.read": "the connection goes back to the others, and the error goes on",
    "pointsman/store/sqlite_writer.py:Writer._answers": "were the writer's thread to end, every later caller would wait for ever",
    "pointsman/worker/worker.py:_ended": "a handler may raise anything, and then its task is given back, counted as an error",
}
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
