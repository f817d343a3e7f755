"""CloudEvents 1.0 as JSON lines, to a file or to standard output."""

import errno
import os
import stat
import sys
from urllib.parse import unquote, urlsplit

from pointsman.engine.relaying import TAKEN, Answer
from pointsman.kernel.chain import canonical, parse
from pointsman.kernel.hook import Hook
from pointsman.kernel.message import Message
from pointsman.types import Instant

PRIVATE = 0o600
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOCTTY | os.O_NONBLOCK
"""A pipe that nobody reads is not waited for."""


def line(hook: Hook, message: Message) -> str:
    body = parse(message.body)
    event = {
        "specversion": "1.0",
        "id": message.id,
        "source": hook.link,
        "type": body["type"],
        "subject": message.task,
        "time": body["timestamp"],
        "datacontenttype": "application/json",
        "data": body["data"],
    }
    return canonical(event) + "\n"


def cloudevents(hook: Hook, message: Message, now: Instant) -> Answer:
    """A line that is there, whole and on the disk, or is written again."""
    text = line(hook, message)
    try:
        _put(hook.url, text)
    except OSError as error:
        return Answer("again", f"it cannot be written ({error.strerror})")
    return TAKEN


def _put(url: str, text: str) -> None:
    if url == "stdout:":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    file = os.open(unquote(urlsplit(url).path), _APPEND, PRIVATE)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        left = text.encode()
        while left:
            left = left[os.write(file, left) :]
        os.fsync(file)
    finally:
        os.close(file)
