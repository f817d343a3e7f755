"""Every statement stands in store/sql, named and with a shape; Python holds no SQL but transaction control and pragmas."""

import re

import pytest

from house.source import strings, trees

STATEMENT = re.compile(
    r"^\s*(/\*.*\*/\s*)?(SELECT\b.*\b(FROM|CAST)\b|INSERT\s+(OR\s+\w+\s+)?INTO\b|UPDATE\s+\w+\s+SET\b|DELETE\s+FROM\b|REPLACE\s+INTO\b"
    r"|(CREATE|ALTER|DROP)\s+(TABLE|INDEX|UNIQUE|VIEW|TRIGGER)\b|WITH\s+\w+\s+AS\b)",
    re.IGNORECASE | re.DOTALL,
)


@pytest.mark.parametrize("module", sorted(trees()))
def test_no_statement_in_a_string(module: str) -> None:
    found = [(line, text[:60]) for line, text in strings(trees()[module]) if STATEMENT.search(text)]
    assert not found, f"{module}: move it to store/sql: {found}"


@pytest.mark.parametrize(
    "text",
    ["SELECT id FROM task", "insert into task values (1)", "\n  UPDATE task SET a = 1", "CREATE TABLE x (y)", "WITH x AS (SELECT 1)"],
)
def test_the_pattern_knows_a_statement(text: str) -> None:
    assert STATEMENT.search(text)


@pytest.mark.parametrize("text", ["BEGIN IMMEDIATE", "PRAGMA journal_mode = WAL", "update the task", "select one of them", "with care"])
def test_the_pattern_lets_prose_and_control_pass(text: str) -> None:
    assert not STATEMENT.search(text)
