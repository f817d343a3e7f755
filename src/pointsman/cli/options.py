"""The flags that several commands share, each written once."""

from functools import partial
from typing import Annotated

import typer

flag = partial(typer.Option, show_default=False)
argument = partial(typer.Argument, show_default=False)
_WORK = "Python file with the machines. Default: the built-in tasks machine."

Json = Annotated[bool | None, flag("--json", help="Print data as JSON, and an error as one JSON line on stderr.")]
Db = Annotated[
    str | None,
    flag(
        "--db",
        metavar="URL",
        help="sqlite:///work.db (relative), sqlite:////abs/work.db or postgresql://USER@HOST/NAME. Default: sqlite:///pointsman.db.",
    ),
]
Work = Annotated[str | None, flag("--work", metavar="WORK.PY", help=_WORK)]
WorkFile = Annotated[str | None, argument(metavar="WORK.PY", help=_WORK)]
Machine = Annotated[str | None, flag("--machine", metavar="NAME", help="The machine. Not needed where only one is served.")]
OfMachine = Annotated[str | None, flag("--machine", metavar="NAME", help="Only this machine.")]
As = Annotated[str | None, flag("--as", metavar="NAME", help="Who acts: a name such as ann or worker-1.")]
TaskId = Annotated[str, argument(metavar="ID", help="The task's id.")]
Args = Annotated[
    list[str] | None,
    flag(
        "--arg",
        metavar="K=V",
        help="One value; repeatable. A field that can hold text takes V as it stands, any other reads V as JSON. "
        "K=@FILE takes the text of FILE (@- is stdin), K=@@V is the text @V.",
    ),
]
Epoch = Annotated[int | None, flag("--epoch", metavar="N", help="The epoch under which you own the task.")]
ExpectVersion = Annotated[int | None, flag("--expect-version", metavar="N", help="Refuse unless the task is at this version.")]
Digest = Annotated[str | None, flag("--digest", metavar="DIGEST", help="The content you were shown. A decision must name it.")]
IdempotencyKey = Annotated[
    str | None,
    flag("--idempotency-key", metavar="KEY", help="The same command with the same key is done once, and answered alike."),
]
OfTags = Annotated[list[str] | None, flag("--tag", metavar="NAME", help="Only a task with this tag; several: with all of them.")]
Capabilities = Annotated[
    list[str] | None,
    flag("--capability", metavar="NAME", help="What you are able to do; repeatable. You get no task that needs anything else."),
]
Limit = Annotated[int | None, flag("--limit", "-n", metavar="N", help="At most N.")]
Yes = Annotated[bool, typer.Option("--yes", help="Answer yes to what would be asked.")]
