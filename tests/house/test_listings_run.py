"""Every listing of the README and the guides runs as it stands, and answers what the page says it answers."""

import json
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from house.listings import Listing, environment, listings, need, script, serving, write_files
from house.source import ROOT

PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/*.md")])
WITH_LISTINGS = [page for page in PAGES if any(item.language in ("sh", "python") for item in listings(page))]
LIMIT_S = 60


@pytest.mark.parametrize("page", WITH_LISTINGS, ids=lambda page: page.name)
def test_the_listings_of_a_page_run(page: Path, tmp_path: Path) -> None:
    found = on_a_free_port(listings(page))
    if "curl" in script(found):
        need("curl")
    env = environment(tmp_path)
    write_files(found, tmp_path)
    with ExitStack() as stack:
        for item in found:
            if item.word == "serve":
                stack.enter_context(serving(item.text, tmp_path, env))
        said = run(["sh", "-eu", "-c", script(found)], tmp_path, env)
        said += "".join(
            run([sys.executable, "-c", item.text], tmp_path, env) for item in found if item.language == "python" and not item.word
        )
    answers = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    for item in found:
        if item.language == "json":
            assert json.loads(item.text) in answers
        if item.word == "shows":
            assert item.text.strip() in said


def test_every_listing_says_in_a_known_way_how_it_runs() -> None:
    words = {item.word for page in PAGES for item in listings(page)}
    assert {word for word in words if "." not in word} <= {"", "serve", "activate", "shows"}


def on_a_free_port(found: list[Listing]) -> list[Listing]:
    """The pages use the default port; a test takes one that nobody else has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return [
        Listing(item.language, item.word, item.text.replace("8470", str(port)).replace("pointsman serve", f"pointsman serve --port {port}"))
        for item in found
    ]


def run(command: list[str], folder: Path, env: dict[str, str]) -> str:
    done = subprocess.run(
        command, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr
