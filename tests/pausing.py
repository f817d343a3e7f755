"""A probe that holds a unit of work at a point, so that another one meets it there."""

from threading import Event

PATIENCE_S = 20


class Pausing:
    """A probe that holds whoever passes a point, once, until it is let go."""

    def __init__(self, point: str):
        self.point: str | None = None
        self._wanted, self.passed, self.leave = point, Event(), Event()

    def arm(self) -> None:
        self.point = self._wanted

    def __call__(self, point: str) -> None:
        if point == self.point:
            self.point = None
            self.passed.set()
            assert self.leave.wait(PATIENCE_S)
            if point == "unit.done":
                raise ZeroDivisionError("taken back")
