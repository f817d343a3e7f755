"""A copy of a database in use, as one file that is there whole or not at all."""

import os
from contextlib import suppress

import apsw

from pointsman.errors import StoreError
from pointsman.store.sqlite_file import File, fault, unavailable

ASIDE = ("-wal", "-shm", "-journal")
"""What stands beside a database that some process has open, or that died while it had."""


def copy(source: File, target: str, *, replace: bool) -> None:
    """Write `target`, a copy of `source` as of one moment; writers go on meanwhile. A file that is there is replaced
    only by `replace`, and then in one step. What fails is a StoreError, and leaves the target as it was."""
    _see_that_it_is_free(source, target, replace)
    partial = f"{target}-partial"
    try:
        _create(partial)
        _write(source, partial)
        _put(partial, target, replace)
    except OSError as error:
        raise unavailable(target, f"it cannot be written ({error.strerror})") from error
    finally:
        with suppress(FileNotFoundError):
            os.unlink(partial)


def _see_that_it_is_free(source: File, target: str, replace: bool) -> None:
    if not os.path.lexists(target):
        return
    if not replace:
        raise unavailable(target, "it is there already")
    if os.path.samefile(source.path, target):
        raise unavailable(target, "it is the database itself")
    if beside := [target + end for end in ASIDE if os.path.lexists(target + end)]:
        raise unavailable(target, f"it is in use: {beside[0]} stands beside it")


def _create(partial: str) -> None:
    """An empty file for its owner's eyes only, in the place of one that an earlier, killed copy left."""
    with suppress(FileNotFoundError):
        os.unlink(partial)
    os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _write(source: File, partial: str) -> None:
    try:
        original, copied = apsw.Connection(source.path, flags=apsw.SQLITE_OPEN_READWRITE), apsw.Connection(partial)
        try:
            original.set_busy_timeout(round(source.patience_s * 1000))
            with copied.backup("main", original, "main") as backup:
                backup.step()
            found = copied.execute("PRAGMA integrity_check").fetchall()
        finally:
            copied.close()
            original.close()
    except apsw.Error as error:
        raise fault(error, source.path) or unavailable(source.path, str(error)) from error
    if found != [("ok",)]:
        raise StoreError("store_unavailable", f"database {source.path}: the copy is not sound, and was thrown away")


def _put(partial: str, target: str, replace: bool) -> None:
    """Under its name at last; without `replace` a file that came meanwhile is kept."""
    if replace:
        os.replace(partial, target)
    else:
        os.link(partial, target)
    folder = os.open(os.path.dirname(target), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
