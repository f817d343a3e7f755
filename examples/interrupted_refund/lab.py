"""The lab: refunds whose workers are killed, and the ledger of the service they were sent to as the judge.

    python examples/interrupted_refund/lab.py [--quick] [--db URL] [--refunds N] [--seed N] [--report FILE]

First each named point of each effect by itself (cases.py says what has to come of it), then kills at random; then the same with blind
retry, and with a guess at what the last worker wrote. Ends with 1 when an effect was doubled or is missing with the ledger, or when
nothing was without it: then the trial shows nothing.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from cases import CASES, EFFECT_OF, SENT, Case
from work import EFFECTS, Refunds

from pointsman import Pointsman, Principal, Task

HERE = Path(__file__).parent
PATIENCE_S = 120
SIDE_BY_SIDE = 4
PERSON = Principal("paula", kind="person")
_RESTS = threading.Event()
FIELDS = {"cents": 1990, "customer": "kim@example.com"}


@dataclass
class Lab:
    """A board, the remote, and everything that was started."""

    pm: Pointsman
    url: str
    remote: str
    deaths: Counter[str] = field(default_factory=Counter[str])

    def order(self, order: str, **terms: Any) -> Task:
        return self.pm.create("refunds", {"order": order, **FIELDS}, by="shop", **terms)

    def worker(self, way: str, die: str = "", tag: str = "") -> "subprocess.Popen[bytes]":
        env = {**os.environ, "LAB_REMOTE": self.remote, "LAB_DIE": die, "LAB_WAY": way, "LAB_TAG": tag, "POINTSMAN_DB": self.url}
        command = [sys.executable, "-m", "pointsman", "worker", str(HERE / "work.py"), "--as", "worker"]
        return subprocess.Popen(command, env=env, cwd=HERE, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def dies(self, die: str, tag: str, way: str = "ledger") -> None:
        """A worker that kills itself there."""
        process = self.worker(way, die, tag)
        if process.wait(PATIENCE_S) != -signal.SIGKILL:
            raise SystemExit(f"a worker was to die at {die}, and did not")
        self.deaths[die.partition(":")[0]] += 1

    @contextmanager
    def working(self, way: str, tag: str = "") -> Iterator[None]:
        """A worker that nothing happens to."""
        process = self.worker(way, "", tag)
        try:
            yield
        finally:
            process.terminate()
            process.wait()

    def arrived(self) -> list[dict[str, Any]]:
        with urlopen(f"{self.remote}/all") as answer:
            return json.load(answer)

    def is_over(self, task: str) -> bool:
        return Refunds.definition.state[self.pm.get(task).state].final


@contextmanager
def opened(folder: Path, db: str | None) -> Iterator[Lab]:
    """The remote in a process of its own, a board, and a person who answers what only a person can."""
    process = subprocess.Popen([sys.executable, str(HERE / "remote.py"), str(folder / "remote.db")], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    remote = f"http://127.0.0.1:{int(process.stdout.readline())}"
    url = db or f"sqlite:///{folder / 'work.db'}"
    stopped = threading.Event()
    try:
        with Pointsman(url, [Refunds], duties=True) as pm:
            lab = Lab(pm, url, remote)
            person = threading.Thread(target=answering, args=(lab, stopped), daemon=True)
            person.start()
            try:
                yield lab
            finally:
                stopped.set()
                person.join()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def answering(lab: Lab, stopped: threading.Event) -> None:
    """A person with access to the service looks there, and says what happened."""
    while not stopped.wait(0.3):
        arrived = {row["reference"]: row["id"] for row in lab.arrived()}
        for task in lab.pm.list(machine="refunds", open=True, limit=1_000):
            for operation, _ in lab.pm.resume(task.id).in_doubt if task.begun and not task.held else ():
                if operation.kind == "ask":
                    said = "succeeded" if operation.id in arrived else "not_done"
                    lab.pm.finish(operation.id, said, arrived.get(operation.id), by=PERSON, note="looked there")


def until(holds: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > end:
            raise SystemExit(f"never: {what}")
        _RESTS.wait(0.1)


# ── the named points ─────────────────────────────────────────────────────────────────────────────────────────────────


def at_each_point(lab: Lab, cases: Sequence[Case]) -> list[str]:
    """What came otherwise than cases.py says."""
    wanted = [(case, effect) for case in cases for effect in EFFECT_OF[case.kind]]
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        return [fault for faults in pool.map(lambda item: at_a_point(lab, *item), wanted) for fault in faults]


def at_a_point(lab: Lab, case: Case, effect: str) -> list[str]:
    name = f"ledger: {case.point} of {effect}"
    tag = f"{case.point}.{effect}"
    task = lab.order(name, tags=[tag])
    for point in (*([case.first] if case.first else []), case.point):
        lab.dies(f"{point}:{effect}", tag)
    with lab.working("ledger", tag):
        until(lambda: lab.is_over(task.id), f"the refund that was killed at {name} is over")
    (kept,) = [item.operation for item in lab.pm.operations(task.id) if item.operation.name == effect]
    seen = (kept.attempt, was_asked(lab, task.id))
    return [] if seen == (case.attempts, case.asked) else [f"{name}: {seen} where {(case.attempts, case.asked)} was to come"]


def was_asked(lab: Lab, task: str) -> bool:
    """Whether the person had to say what happened."""
    return any(entry.kind == "settle" and entry.by == PERSON.name for entry in lab.pm.history(task))


def cancelled_after_a_mail(lab: Lab) -> dict[str, Any]:
    """The mail is out when somebody cancels: the report says so."""
    task = lab.order("cancelled after its mail", tags=["cancelled"])
    lab.dies("outcome.after:mail", "cancelled")
    report = lab.pm.cancel(task.id, by=Principal("olga", kind="person"), reason="the customer called").as_json()
    return {name: [item["name"] for item in report[name]] for name in ("happened", "in_doubt", "undoable", "not_undoable")}  # type: ignore[index, union-attr]


# ── kills at random ──────────────────────────────────────────────────────────────────────────────────────────────────


def at_random(lab: Lab, way: str, refunds: int, chance: random.Random, kills: int) -> None:
    """So many workers are killed while the refunds are paid, whatever they are at."""
    tasks = [lab.order(f"{way} {number}", tags=[way]).id for number in range(refunds)]
    processes = [lab.worker(way, "", way) for _ in range(SIDE_BY_SIDE - 1)]
    while not all(lab.is_over(task) for task in tasks):
        _RESTS.wait(chance.uniform(0.2, 1.2))
        if kills:
            kills, number = kills - 1, chance.randrange(len(processes))
            processes[number].kill()
            processes[number].wait()
            lab.deaths["at random"] += 1
            processes[number] = lab.worker(way, "", way)
    for process in processes:
        process.terminate()
        process.wait()


def without(lab: Lab, way: str) -> None:
    """The same points, and no ledger: one refund for each."""
    wanted = [(point, effect) for effect in EFFECTS for point in ("send.before", "send.after")]
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        list(pool.map(lambda item: _without(lab, way, *item), wanted))


def _without(lab: Lab, way: str, point: str, effect: str) -> None:
    tag = f"{way}.{point}.{effect}"
    task = lab.order(f"{way}: {point} of {effect}", tags=[tag])
    lab.dies(f"{point}:{effect}", tag, way)
    with lab.working(way, tag):
        until(lambda: lab.is_over(task.id), f"{tag} is over")


# ── the judge ────────────────────────────────────────────────────────────────────────────────────────────────────────


def judged(lab: Lab, orders: list[str]) -> dict[str, int]:
    """The remote's own ledger against what was to arrive: each effect of each order once."""
    arrived = Counter((row["kind"], row["request"]["order"]) for row in lab.arrived())
    counts = [arrived[kind, order] for order in orders for kind in EFFECTS]
    return {"effects": len(counts), "doubled": sum(count > 1 for count in counts), "missing": sum(count == 0 for count in counts)}


def orders(lab: Lab, way: str) -> list[str]:
    """The orders of the refunds that were paid in this way."""
    done = lab.pm.list(machine="refunds", state="done", limit=1_000)
    return [order for task in done if (order := str(task.fields["order"])).startswith(way)]


def facts(lab: Lab) -> list[tuple[str, int, int, int, int]]:
    """By effect: how many operations, how many were in doubt when somebody took over, sent again, asked for."""
    doubted, found = Counter[str](), Counter[tuple[str, str]]()
    for task in lab.pm.list(machine="refunds", limit=1_000):
        for entry in lab.pm.history(task.id):
            if entry.kind == "acquire" and entry.epoch > 1:
                doubted.update(item.name for item in lab.pm.get(task.id, version=entry.version).begun)
        for shown in lab.pm.operations(task.id):
            item = shown.operation
            found.update([(item.name, "all")])
            found.update([(item.name, "again")] if item.attempt > 1 else [])
            found.update([(item.name, "asked")] if item.kind == "ask" and was_asked(lab, task.id) else [])
    return [(name, found[name, "all"], doubted[name], found[name, "again"], found[name, "asked"]) for name in EFFECTS]


def said(counts: dict[str, int]) -> str:
    return f"{counts['effects']} effects: {counts['doubled']} doubled, {counts['missing']} missing"


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill workers in the middle of their effects, and count what arrived.")
    parser.add_argument("--quick", action="store_true", help="one point of each effect, and five refunds at random")
    parser.add_argument("--db", metavar="URL", help="an empty database; else a file that is thrown away")
    parser.add_argument("--refunds", type=int, default=60, metavar="N", help="how many are paid under kills at random")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000), metavar="N")
    parser.add_argument("--report", type=Path, default=Path("lab-report.json"), metavar="FILE")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory() as name, opened(Path(name), options.db) as lab:
        sys.exit(run(lab, options))


def run(lab: Lab, options: argparse.Namespace) -> int:
    print("killing a worker at each point of each effect…", flush=True)
    cases = [case for case in CASES if case.point == SENT] if options.quick else CASES
    faults = at_each_point(lab, cases)
    report = cancelled_after_a_mail(lab)
    print(f"cancelled after its mail: happened {', '.join(report['happened'])}; cannot be undone: {', '.join(report['not_undoable'])}")
    print("killing workers at random…", flush=True)
    refunds = 5 if options.quick else options.refunds
    at_random(lab, "ledger", refunds, random.Random(options.seed), refunds // 2)
    print("the same with blind retry, and with a guess…", flush=True)
    for way in ("blind", "guess"):
        without(lab, way)
    found = {way: judged(lab, orders(lab, way)) for way in ("ledger", "blind", "guess")}
    print(f"\n{'effect':8} {'all':>5} {'in doubt':>9} {'sent again':>11} {'asked':>6}")
    for effect, *counts in facts(lab):
        print(f"{effect:8} {counts[0]:5} {counts[1]:9} {counts[2]:11} {counts[3]:6}")
    arrived = Counter(row["kind"] for row in lab.arrived())
    print(f"\nthe remote's own ledger: {', '.join(f'{arrived[kind]} {kind}s' for kind in EFFECTS)}; workers killed: {lab.deaths.total()}")
    verified = lab.pm.verify().ok
    print(f"blind retry: {said(found['blind'])}\na guess:     {said(found['guess'])}")
    print(
        "\n".join(faults)
        or f"each of {len(cases)} cases came as docs/recovery.md says; history {'is whole' if verified else 'IS NOT WHOLE'}"
    )
    options.report.write_text(
        json.dumps({"seed": options.seed, "deaths": dict(lab.deaths), "cancelled": report, "faults": faults, **found}, indent=2)
    )
    print(said(found["ledger"]))
    honest = found["blind"]["doubled"] and (found["guess"]["missing"] or found["guess"]["doubled"])
    whole = verified and not faults and not found["ledger"]["doubled"] and not found["ledger"]["missing"]
    return 0 if whole and honest else 1


if __name__ == "__main__":
    main()
