"""An agent loop as a worker: a thousand steps, each remembered, so that a crash costs the step it was at and no other.

    python examples/agent_loop.py [--steps N] [--die-at N] [--db URL]

The loop thinks, acts and reads what came of it; the model is played by a function. The worker process is killed in the middle, another
one goes on from the last checkpoint and is answered what the steps before it brought. At the end it is counted how often each step ran.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from pointsman import Event, Machine, NonBlank, Outcome, Pointsman, State, Work, Worker, owner, result, seconds

EVERY = 100
"""Steps between two checkpoints."""


class Research(Machine, name="research"):
    """A question, and as many steps as it takes."""

    question: NonBlank
    steps: int
    answer: str | None = result()

    asked = State(initial=True)
    thinking = State(lease=seconds(3))
    answered = State(final=True)
    dropped = State(final=True, outcome="failed")

    take = Event(asked >> thinking, acquires=True)
    answer_it = Event(thinking >> answered, by=owner, sets="answer")
    drop = Event((asked | thinking) >> dropped)


def model(question: str, step: int, so_far: int) -> dict[str, int]:
    """What a language model would be asked: which number comes next."""
    return {"add": (len(question) * step + so_far) % 7}


def act(log: Path, die_at: int, question: str, step: int, so_far: int) -> int:
    """One turn of the loop. That it ran is noted outside, so that it can be counted; where it is told to, the process dies."""
    with log.open("a") as file:
        file.write(f"{step}\n")
    if step == die_at:
        os.kill(os.getpid(), signal.SIGKILL)
    return so_far + model(question, step, so_far)["add"]


def think(work: Work, log: Path, die_at: int) -> Outcome:
    """From the last checkpoint on, one remembered step after the other."""
    question, steps = work.task.fields["question"], work.task.fields["steps"]
    last = work.resume().checkpoint
    begin, total = (1, 0) if last is None else (last.data["step"] + 1, last.data["total"])
    for step in range(begin, steps + 1):
        total = work.step(f"turn {step}", lambda *asked: act(log, die_at, *asked), question, step, total)
        if step % EVERY == 0:
            work.checkpoint({"step": step, "total": total}, progress={"done": step, "of": steps})
    return work.propose("answer_it", {"answer": f"{total}, after {steps} steps"})


def run(url: str, log: Path, die_at: int) -> None:
    """One worker process, for one task."""
    with Pointsman(url, [Research]) as pm:
        worker = Worker(pm)
        worker.on("research")(lambda work: think(work, log, die_at))
        worker.start("agent")
        pm.wait(pm.list(machine="research")[0].id, states=["answered"], timeout_s=300)
        worker.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description="A thousand remembered steps, and a crash in the middle.")
    parser.add_argument("--steps", type=int, default=1_000, metavar="N")
    parser.add_argument(
        "--die-at", type=int, default=None, metavar="N", help="the step in which the first worker dies; half of them if not said"
    )
    parser.add_argument("--db", metavar="URL", help="an empty database; else a file that is thrown away")
    parser.add_argument("--worker", nargs=2, metavar=("LOG", "STEP"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return run(options.db, Path(options.worker[0]), int(options.worker[1]))
    die_at = options.steps // 2 if options.die_at is None else options.die_at
    with tempfile.TemporaryDirectory() as name:
        url, log = options.db or f"sqlite:///{name}/work.db", Path(name) / "ran"
        with Pointsman(url, [Research]) as pm:
            task = pm.create("research", {"question": "which numbers come next?", "steps": options.steps}, by="ann")
            for step in (die_at, 0):
                done = subprocess.run([sys.executable, __file__, "--db", url, "--worker", str(log), str(step)], check=False)
                print(
                    f"a worker ended with {done.returncode}" + (f", in step {step}" if done.returncode == -signal.SIGKILL else ""),
                    flush=True,
                )
            task = pm.get(task.id)
            ran = Counter(log.read_text().split())
            print(f"{task.fields['answer']}: {task.version} entries, {sum(ran.values())} runs of {len(ran)} steps")
            again = [step for step, times in ran.items() if times > 1]
            print(f"run again: {', '.join(again) or 'none'}; history {'is whole' if pm.verify().ok else 'IS NOT WHOLE'}")
            sys.exit(0 if task.state == "answered" and set(again) <= {str(die_at)} else 1)


if __name__ == "__main__":
    main()
