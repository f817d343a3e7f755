"""A command in a process group of its own: told when it ends, stopped with all that it started."""

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread


@dataclass(frozen=True, slots=True)
class End:
    """How a command ended: with an exit status, or by a signal."""

    status: int | None
    signal: str | None

    @property
    def well(self) -> bool:
        return self.status == 0

    def __str__(self) -> str:
        return f"ended with status {self.status}" if self.signal is None else f"was ended by {self.signal}"


class Command:
    """A running command. `ended` is called once, from a thread of its own, when the command itself has ended; its group
    may live on until `end`."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], ended: Callable[[], None], stdout: int | None = None):
        """Without a shell, with nothing to read. OSError when it cannot be started."""
        self._process = subprocess.Popen(argv, env=dict(env), stdin=subprocess.DEVNULL, stdout=stdout, process_group=0)
        self._ended = ended
        self._watch = Thread(target=self._wait, name="pointsman-command", daemon=True)
        self._watch.start()

    def send(self, number: int) -> None:
        """A signal to the command and all that it started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def end(self) -> End:
        """Once it has ended: kill what it left behind, and tell how it ended. Until it is reaped here its number, which
        is that of the group, belongs to nobody else."""
        self._watch.join()
        self.send(signal.SIGKILL)
        code = self._process.wait()
        return End(code, None) if code >= 0 else End(None, _name(-code))

    def _wait(self) -> None:
        os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        self._ended()


def _name(number: int) -> str:
    known = {item.value for item in signal.Signals}
    return signal.Signals(number).name if number in known else f"signal {number}"
