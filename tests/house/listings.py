"""Listings of a page, and a folder in which they run as a reader would run them."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

FENCE = re.compile(r"^```(?P<language>\w+)(?: (?P<word>\S+))?\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
READY_S = 20


@dataclass(frozen=True, slots=True)
class Listing:
    """A fenced block. `word` says how it runs: `serve`, `activate`, the name of the file it is, or nothing."""

    language: str
    word: str
    text: str


def listings(page: Path) -> list[Listing]:
    return [Listing(match["language"], match["word"] or "", match["text"]) for match in FENCE.finditer(page.read_text())]


def script(found: list[Listing]) -> str:
    """The page's shell listings as one script. What make runs is left out: this is a part of what make runs."""
    shell = [item.text for item in found if item.language == "sh" and not item.word]
    return "".join(text for text in shell if not re.search(r"^make ", text, re.MULTILINE))


def write_files(found: list[Listing], folder: Path) -> None:
    for item in found:
        if "." in item.word:
            (folder / item.word).write_text(item.text)


def environment(folder: Path) -> dict[str, str]:
    """`python` and `pointsman` are this interpreter and this source, whether or not anything is installed."""
    programs = folder / "programs"
    programs.mkdir()
    for name, arguments in (("python", ""), ("pointsman", "-m pointsman")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        (programs / name).chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("POINTSMAN_")}
    return {**kept, "PATH": f"{programs}:{kept['PATH']}", "PYTHONPATH": ":".join(path for path in sys.path if path)}


@contextmanager
def serving(command: str, folder: Path, env: dict[str, str]) -> Iterator[None]:
    """The server of a page, from its ready line on."""
    process = subprocess.Popen(command.split(), cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert "http://" in process.stdout.readline(), "the server ended before it was ready"
        yield
    finally:
        process.terminate()
        process.communicate(timeout=READY_S)


def need(program: str) -> None:
    """Install a program where that is possible; leave the test out, and say so, where it is not."""
    if shutil.which(program) is None and shutil.which("apt-get") and os.geteuid() == 0:
        install = f"apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y {program}"
        subprocess.run(install, shell=True, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    if shutil.which(program) is None:
        pytest.skip(f"NOT RUN: {program} is missing; install it (apt-get install {program})")
