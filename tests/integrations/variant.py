"""The built-in machine with its rule replaced by a judge: one line of its source, and the name to import."""

import inspect
from pathlib import Path

from pointsman import Machine, builtin
from pointsman.app import machines

RULE = "topic = check(mentions_topic, eager=True)"
RUBRIC = "The draft speaks about what the title and the brief ask for."


def source(url: str, model: str = "openai:gpt-5.2", *, version: int = 1, rubric: str = RUBRIC, timeout_s: float = 20) -> str:
    told = f'"{rubric}", model="{model}", base_url="{url}"'
    judged = (
        f'topic = judge({told}, reads=("title", "brief", "draft"), max_tokens=300, price=(2, 10), timeout={round(timeout_s * 1_000_000)})'
    )
    text = inspect.getsource(builtin)
    assert text.count(RULE) == 1
    return text.replace(RULE, judged).replace("    hours,\n", "    hours,\n    judge,\n").replace("version = 1", f"version = {version}")


def variant(folder: Path, text: str) -> type[Machine]:
    path = folder / "work.py"
    path.write_text(text)
    (machine,) = machines(path) or ()
    return machine
