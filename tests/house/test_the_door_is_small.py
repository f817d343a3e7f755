"""`import pointsman` gives exactly what it lists and loads no extra."""

import subprocess
import sys

import pointsman

EXTRAS = (
    *("fastapi", "starlette", "uvicorn", "httptools", "uvloop", "httpx", "mcp", "typer", "rich", "psycopg", "asyncpg", "jinja2"),
    *("pydantic_ai", "openai", "anthropic"),
)


def test_every_listed_name_is_there_and_listed_once() -> None:
    assert len(set(pointsman.__all__)) == len(pointsman.__all__)
    assert [name for name in pointsman.__all__ if not hasattr(pointsman, name)] == []


def test_importing_it_loads_no_extra() -> None:
    code = f"import sys, pointsman; print(*sorted(set(sys.modules) & set({EXTRAS!r})))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": ":".join(sys.path)}
    )
    assert loaded.stdout.strip() == ""
