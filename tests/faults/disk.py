"""A disk that fills up, fails to sync, or loses power: SQLite's file layer, with faults on demand."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import apsw

SECTOR = 512
SYSTEM = "unix"


@dataclass
class Medium:
    """One file: what is certainly on the disk, and what was written since the last sync. `synced` None: no such file."""

    synced: bytearray | None = None
    unsynced: list[tuple[int, bytes | None]] = field(default_factory=list)

    def settle(self) -> None:
        self.synced = applied(self.unsynced, self.synced or bytearray())
        self.unsynced = []

    def after(self, writes: int) -> bytearray | None:
        """The file with the first so many of its unsynced writes."""
        if self.synced is None and not writes:
            return None
        return applied(self.unsynced[:writes], bytearray(self.synced or b""))


class Disk:
    """What the files in `folder` suffer. A pair (offset, None) in `unsynced` is a truncation."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.full = self.sync_fails = self.read_only = self.dark = False
        self.writes_left: int | None = None
        self.media: dict[str, Medium] = {}

    def settle(self) -> None:
        """Take all that was written so far for synced."""
        for medium in self.media.values():
            medium.settle()

    def spend(self) -> None:
        """One write. Power goes at the last one that `writes_left` allows."""
        if self.writes_left is not None:
            self.writes_left -= 1
            self.dark = self.dark or self.writes_left < 0
        if self.dark:
            raise apsw.IOError("no power")

    def after_the_cut(self, folder: Path, chance: random.Random) -> None:
        """Lay into `folder` what a cut leaves: of each file what was synced, and a part of what was not."""
        for path, medium in self.media.items():
            image = medium.after(chance.choice((0, len(medium.unsynced), chance.randint(0, len(medium.unsynced)))))
            if image is not None and not path.endswith("-shm"):
                (folder / Path(path).name).write_bytes(image)


def applied(writes: list[tuple[int, bytes | None]], image: bytearray) -> bytearray:
    for offset, data in writes:
        if data is None:
            del image[offset:]
        else:
            image.extend(bytes(max(0, offset - len(image))))
            image[offset : offset + len(data)] = data
    return image


class DiskFile(apsw.VFSFile):
    def __init__(self, disk: Disk, path: str, name: "str | apsw.URIFilename | None", flags: list[int]):
        super().__init__(SYSTEM, name, flags)
        self._disk = disk
        self._medium = disk.media.setdefault(path, Medium())

    def xWrite(self, data: bytes, offset: int) -> None:
        self._disk.spend()
        if self._disk.full:
            raise apsw.FullError("full")
        super().xWrite(data, offset)
        pieces = range(0, len(data), SECTOR)
        self._medium.unsynced += [(offset + start, bytes(data[start : start + SECTOR])) for start in pieces]

    def xTruncate(self, size: int) -> None:
        self._disk.spend()
        super().xTruncate(size)
        self._medium.unsynced.append((size, None))

    def xSync(self, flags: int) -> None:
        self._disk.spend()
        if self._disk.sync_fails:
            raise apsw.IOError("sync failed")
        self._medium.settle()


class DiskVfs(apsw.VFS):
    def __init__(self, disk: Disk):
        super().__init__(f"disk-{id(disk)}", SYSTEM, makedefault=True)
        self._disk = disk

    def xOpen(self, name: "str | apsw.URIFilename | None", flags: list[int]) -> apsw.VFSFile:
        if self._disk.read_only:
            flags[0] = flags[0] & ~(apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE) | apsw.SQLITE_OPEN_READONLY
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if path and Path(path).parent == self._disk.folder:
            return DiskFile(self._disk, path, name, flags)
        return apsw.VFSFile(SYSTEM, name, flags)

    def xDelete(self, path: str, sync: bool) -> None:
        self._disk.spend()
        super().xDelete(path, sync)
        self._disk.media.pop(path, None)


@contextmanager
def faulty(folder: Path) -> Iterator[Disk]:
    """While this lasts, SQLite reaches the files in `folder` through a disk that can be told to fail."""
    disk = Disk(folder)
    vfs = DiskVfs(disk)
    try:
        yield disk
    finally:
        vfs.unregister()
