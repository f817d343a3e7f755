"""P19 on one door: an expected version is used once; version chains have no gap and no fork."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import support
from pointsman import Pointsman, Refused, Task

RIVALS = 8


def _race(views: list[Pointsman], task: Task) -> list[str]:
    """Everybody proposes the same event at the same expected version at once; the codes, "" for the winner."""
    gate = Barrier(len(views))

    def one(pm: Pointsman) -> str:
        gate.wait()
        try:
            pm.propose(task.id, "start_draft", by=support.OWNER, epoch=task.epoch, expect_version=task.version)
        except Refused as refused:
            assert refused.version == task.version + 1
            return refused.code
        return ""

    with ThreadPoolExecutor(len(views)) as pool:
        return list(pool.map(one, views))


def test_the_same_expected_version_twice_wins_once(url: str) -> None:
    with Pointsman(url) as one, Pointsman(url) as other:
        task = support.drafting(one)
        for _ in range(25):
            codes = _race([one, other] * (RIVALS // 2), task)
            assert sorted(codes) == ["", *["stale_version"] * (RIVALS - 1)]
            task = one.get(task.id)
        entries = one.history(task.id)
        assert [entry.version for entry in entries] == list(range(1, 29))
        assert one.verify().ok


def test_a_version_from_the_future_is_refused(url: str) -> None:
    with Pointsman(url) as pm:
        task = support.drafting(pm)
        for version in (0, -1, task.version - 1, task.version + 1, 2**62):
            try:
                pm.propose(task.id, "start_draft", by=support.OWNER, epoch=task.epoch, expect_version=version)
            except Refused as refused:
                assert (refused.code, refused.version) == ("stale_version", task.version)
            else:
                raise AssertionError(f"version {version} was taken")
        assert pm.get(task.id) == task
