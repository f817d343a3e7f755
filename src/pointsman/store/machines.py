"""Published machine versions: the frozen form and the source hash of each function it names."""

from collections.abc import Mapping
from dataclasses import dataclass

from pointsman.kernel.chain import canonical, digest, parse
from pointsman.kernel.definition import Definition
from pointsman.kernel.exported import export, restore
from pointsman.store.database import Row, Tx
from pointsman.types import Instant


@dataclass(frozen=True, slots=True)
class Published:
    name: str
    version: int
    digest: str
    form: str
    functions: str
    published_at: Instant
    hash: str

    @property
    def definition(self) -> Definition:
        return restore(parse(self.form))

    @property
    def sources(self) -> Mapping[str, str]:
        """Source hash by "kind name version", as seen at publication."""
        return parse(self.functions)

    @property
    def sound(self) -> bool:
        return self.digest == digest("machine", parse(self.form)) and self.hash == _hash(self)


def published(definition: Definition, sources: Mapping[str, str], at: Instant) -> Published:
    form = canonical(export(definition))
    blank = Published(definition.name, definition.version, digest("machine", parse(form)), form, canonical(dict(sources)), at, "")
    return Published(blank.name, blank.version, blank.digest, form, blank.functions, at, _hash(blank))


def _hash(row: Published) -> str:
    return digest("published", [row.name, row.version, row.digest, row.form, row.functions, row.published_at])


def _read(row: Row | None) -> Published | None:
    return None if row is None else Published(*row)


def find(tx: Tx, name: str, version: int) -> Published | None:
    return _read(tx("find_machine", name=name, version=version))


def ahead(tx: Tx, name: str) -> None:
    """`newest` is asked next."""
    tx.ahead("newest_machine", name=name)


def newest(tx: Tx, name: str) -> tuple[int, str] | None:
    """The highest published version of a name and its digest, None when there is none."""
    return tx("newest_machine", name=name)


def digest_of(definition: Definition) -> str:
    return digest("machine", export(definition))


def every(tx: Tx) -> list[Published]:
    return [Published(*row) for row in tx("list_machines")]


def add(tx: Tx, row: Published) -> None:
    tx("add_machine", **_parameters(row))


def replace(tx: Tx, row: Published, expected_digest: str) -> bool:
    """Put another structure under a published number; False when the row is no longer the expected one."""
    return tx("replace_machine", **_parameters(row), expected_digest=expected_digest) is not None


def has_tasks(tx: Tx, name: str, version: int) -> bool:
    """Whether any task was ever made of a version: its structure is then what their history is read by."""
    return bool(tx("tasks_of", machine=name, machine_version=version)[0])


def has_open_tasks(tx: Tx, name: str, version: int) -> bool:
    return bool(tx("open_tasks_of", machine=name, machine_version=version)[0])


def _parameters(row: Published) -> dict[str, str | int]:
    return {name: getattr(row, name) for name in row.__slots__}
