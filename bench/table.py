"""What a figure is, and how a list of them is printed."""

import os
import platform
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HEAD = ("figure", "measured", "floor", "ratio", "aim")


@dataclass(frozen=True, slots=True)
class Line:
    """One row. A rate is set beside its floor, and the ratio is what is compared; other figures stand alone."""

    name: str
    measured: str
    floor: str = ""
    ratio: str = ""
    aim: str = ""

    def cells(self) -> tuple[str, ...]:
        return self.name, self.measured, self.floor, self.ratio, self.aim


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to measure. Floor and figure alternate `rounds` times for `seconds` each; what must stay flat is looked
    at `looks` times on each of the sizes `past` (versions, tasks) and `queued`, and `behind` so many others."""

    seconds: float
    rounds: int
    rivals_s: float
    looks: int
    past: tuple[int, ...]
    queued: tuple[int, ...]
    behind: int = 100_000

    @classmethod
    def of(cls, quick: bool) -> "Effort":
        if quick:
            return cls(0.5, 1, 3, 50, (100, 10_000), (1_000, 30_000))
        return cls(2, 3, 10, 200, (100, 1_000, 10_000, 100_000), (1_000, 10_000, 100_000, 1_000_000))


def beside(name: str, floor: Callable[[], float], figure: Callable[[], float], effort: Effort, aim: str = "") -> Line:
    """Alternate floor and figure, so that both meet the same weather, and print the median of each and of the ratios."""
    pairs = [(floor(), figure()) for _ in range(effort.rounds)]
    floors, figures = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratio = statistics.median(mine / bound for bound, mine in pairs)
    return Line(name, f"{figures:,.0f}/s", f"{floors:,.0f}/s", f"{ratio:.2f}", aim)


def render(lines: list[Line]) -> str:
    """A Markdown table that also reads well on a terminal."""
    rows = [HEAD, *(line.cells() for line in lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    written = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows]
    return "\n".join([written[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *written[1:]])


def machine(folder: Path) -> str:
    """Where this was measured: processors, system, Python, SQLite, the file system that fsync went to, and what else ran."""
    import apsw

    return (
        f"{os.cpu_count()} processors ({_processor()}), {platform.system()} {platform.release()}, Python {platform.python_version()}, "
        f"SQLite {apsw.sqlite_lib_version()}, files on {_file_system(folder)}, load average before the run {os.getloadavg()[0]:.1f}"
    )


def disk() -> str | None:
    """/tmp often lies in memory, where fsync costs nothing; /var/tmp does not."""
    return "/var/tmp" if Path("/var/tmp").is_dir() else None


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    names = (
        [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")] if info.exists() else []
    )
    return names[0] if names else platform.machine()


def _file_system(folder: Path) -> str:
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return "an unknown file system"
    entries = [line.split()[1:3] for line in mounts.read_text().splitlines()]
    fitting = [(len(point), kind) for point, kind in entries if folder.is_relative_to(point)]
    return max(fitting)[1]
