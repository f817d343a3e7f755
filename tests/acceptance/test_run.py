"""`pointsman run` in real processes: a command for each task, its lease kept, its end told."""

import json
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from acceptance.board import BEGUN, FINISH, LONGER_S, PROPOSE, UNTIL_GO, Board, board, ended, gone, until
from pointsman import Refused


@pytest.fixture
def jobs(url: str, tmp_path: Path) -> Iterator[Board]:
    with board(tmp_path, url) as made:
        yield made


def test_a_command_holds_its_task_longer_than_the_lease_and_moves_it_itself(jobs: Board) -> None:
    id = jobs.create()
    script = f'cp "$POINTSMAN_TASK" "$HERE/task"; echo $POINTSMAN_SESSION >"$HERE/session"; {BEGUN}; {UNTIL_GO}; {FINISH}'
    process = jobs.run(script)
    jobs.said("begun")
    task = json.loads(jobs.said("task"))
    assert (task["id"], task["state"], task["epoch"], task["session"]) == (id, "doing", 1, jobs.said("session"))
    end = time.monotonic() + LONGER_S
    while time.monotonic() < end:
        with pytest.raises(Refused, match="already_claimed"):
            jobs.pm.claim("jobs", by="worker-b", id=id)
        threading.Event().wait(0.05)
    jobs.file("go").touch()
    status, out, err = ended(process)
    assert status == 0, err
    assert out.startswith("finish accepted")
    assert err == f"the command ended with status 0; task {id} is done, version 3, owner worker-a, epoch 1\n"
    assert [entry.event for entry in jobs.pm.history(id)] == ["create", "take", "finish"]


@pytest.mark.parametrize(
    ("script", "status", "said", "counted", "reason"),
    [
        ("exit 0", 0, (0, None), (0, 0, 1), "the command ended with status 0"),
        (f"{PROPOSE} step --epoch 1 >&2", 0, (0, None), (1, 0, 0), "the command ended with status 0"),
        ("exit 5", 1, (5, None), (0, 1, 0), "the command ended with status 5"),
        ("kill -9 $$", 1, (None, "SIGKILL"), (0, 1, 0), "the command was ended by SIGKILL"),
    ],
)
def test_what_the_command_leaves_is_given_back(
    jobs: Board, script: str, status: int, said: tuple[int | None, str | None], counted: tuple[int, int, int], reason: str
) -> None:
    id = jobs.create()
    code, out, err = ended(jobs.run(f"echo mine; {script}", "--json"))
    told = json.loads(out)
    assert (code, (told["status"], told["signal"]), told["released"], told["lost"]) == (status, said, True, None), err
    assert err.startswith("mine\n"), "what the command prints does not mix with the data"
    assert (told["task"]["id"], told["task"]["state"], told["task"]["owner"]) == (id, "todo", None)
    assert (jobs.counted(id), jobs.pm.history(id)[-1].reason) == (counted, reason)


def test_what_waits_for_somebody_else_is_left_with_its_owner(jobs: Board) -> None:
    id = jobs.create()
    assert ended(jobs.run(f"{PROPOSE} submit --epoch 1"))[0] == 0
    assert (jobs.pm.get(id).state, jobs.pm.get(id).owner) == ("in_review", "worker-a")


def test_no_task_no_program_and_no_start_are_told_and_cost_no_attempt(jobs: Board) -> None:
    status, _, err = ended(jobs.run("exit 0"))
    assert (status, err) == (3, "nothing_to_claim: no task of jobs waits\n")
    id = jobs.create()
    status, _, err = ended(jobs.start("run", "--work", "work.py", "--", "no-such-program"))
    assert (status, err) == (2, "invalid: COMMAND: there is no program no-such-program\n")
    odd = jobs.file("odd")
    odd.write_text("#!/no/such/interpreter\n")
    odd.chmod(0o755)
    status, _, err = ended(jobs.start("run", "--work", "work.py", "--", str(odd)))
    assert (status, err.startswith("failed: ")) == (1, True)
    assert jobs.counted(id) == (0, 0, 1)
    assert "could not be started" in (jobs.pm.history(id)[-1].reason or "")


def test_a_task_that_comes_while_it_waits_is_taken(jobs: Board) -> None:
    process = jobs.run(FINISH, "--wait-s", "30")
    threading.Event().wait(0.7)
    id = jobs.create()
    assert ended(process)[0] == 0
    assert jobs.pm.get(id).state == "done"


def test_a_loop_takes_one_task_after_the_other_and_ends_when_told(jobs: Board) -> None:
    ids = [jobs.create() for _ in range(10)]
    process = jobs.run(FINISH, "--loop", "--json")
    for id in ids:
        until("every task is done", lambda id=id: jobs.pm.get(id).state == "done")
    later = jobs.create()
    until("one that comes later is done", lambda: jobs.pm.get(later).state == "done")
    process.send_signal(signal.SIGTERM)
    status, out, err = ended(process)
    told = [json.loads(line) for line in out.splitlines()]
    assert (status, [item["task"]["id"] for item in told]) == (0, [*ids, later]), err
    assert {entry.event for id in ids for entry in jobs.pm.history(id)} == {"create", "take", "finish"}


def test_a_loop_ends_by_itself_when_no_task_comes_for_so_long(jobs: Board) -> None:
    ids = [jobs.create() for _ in range(2)]
    assert ended(jobs.run(FINISH, "--loop", "--wait-s", "0.5"))[0] == 0
    assert {jobs.pm.get(id).state for id in ids} == {"done"}


def test_a_loop_whose_command_leaves_tasks_as_they_are_does_not_spin(jobs: Board) -> None:
    id = jobs.create()
    process = jobs.run(f'echo . >>"$HERE/turns"; {BEGUN}', "--loop")
    until("a third turn", lambda: jobs.counted(id)[2] >= 3)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert ended(process)[0] == 0
    assert time.monotonic() - began < 10, "it was waiting, and heeded the signal"
    assert jobs.counted(id)[2] <= 4


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_passed_on_and_the_task_given_back_uncounted(jobs: Board, number: signal.Signals) -> None:
    id = jobs.create()
    process = jobs.run(f"trap 'echo {number.name} >\"$HERE/heard\"; exit 0' {number.name[3:]}; {BEGUN}; {UNTIL_GO}")
    jobs.said("begun")
    process.send_signal(number)
    status, _, err = ended(process)
    assert (status, jobs.said("heard")) == (0, number.name), err
    assert (jobs.pm.get(id).owner, jobs.counted(id)) == (None, (0, 0, 1))
    assert jobs.pm.history(id)[-1].reason == "whoever ran the command was told to stop"


def test_a_command_that_does_not_end_is_killed_with_all_it_started(jobs: Board) -> None:
    jobs.create()
    stubborn = f"trap '' TERM; sleep 600 & echo $! >\"$HERE/below\"; {BEGUN}; wait; {UNTIL_GO}"
    process = jobs.run(stubborn, "--grace", "0.2", "--json")
    pids = [int(jobs.said(name)) for name in ("begun", "below")]
    process.send_signal(signal.SIGTERM)
    status, out, _ = ended(process)
    assert (status, json.loads(out)["signal"]) == (1, "SIGKILL")
    assert [gone(pid) for pid in pids] == [True, True]


def test_a_runner_that_is_killed_loses_its_task_and_its_command_writes_nothing(jobs: Board) -> None:
    id = jobs.create()
    late = f'{FINISH} >"$HERE/late" 2>&1; echo $? >"$HERE/status.new"; mv "$HERE/status.new" "$HERE/status"'
    process = jobs.run(f"{BEGUN}; {UNTIL_GO}; {late}")
    command = int(jobs.said("begun"))
    process.kill()
    process.wait()
    jobs.taken_over(id)
    before = jobs.pm.get(id)
    jobs.file("go").touch()
    assert (jobs.said("status"), jobs.said("late").partition(":")[0]) == ("3", "lease_lost")
    until("the command ended", lambda: gone(command))
    assert jobs.pm.get(id) == before


def test_a_command_that_was_replaced_is_stopped(jobs: Board) -> None:
    """By its own clock the runner cannot know: it was frozen while its lease ran out."""
    id = jobs.create()
    process = jobs.run(f"trap 'echo stopped >\"$HERE/heard\"; exit 0' TERM; {BEGUN}; {UNTIL_GO}", "--json")
    command = int(jobs.said("begun"))
    process.send_signal(signal.SIGSTOP)
    taken = jobs.taken_over(id)
    process.send_signal(signal.SIGCONT)
    status, out, err = ended(process)
    assert (status, jobs.said("heard")) == (3, "stopped")
    assert (json.loads(out)["lost"]["code"], json.loads(err.splitlines()[-1])["code"], json.loads(out)["released"]) == (
        "lease_lost",
        "lease_lost",
        False,
    )
    assert gone(command)
    assert jobs.pm.get(id) == taken


def test_a_command_whose_task_somebody_ended_is_stopped(jobs: Board) -> None:
    id = jobs.create()
    process = jobs.run(f"{BEGUN}; {UNTIL_GO}")
    jobs.said("begun")
    jobs.pm.propose(id, "drop", {}, by="ann")
    status, _, err = ended(process)
    assert (status, "SIGTERM" in err, "wrong_state" in err) == (3, True, True)
    assert jobs.pm.get(id).state == "dropped"
