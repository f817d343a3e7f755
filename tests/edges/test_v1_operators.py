"""Over `/v1`, whoever says no name does not do what operators do."""

from pathlib import Path

import pytest

from edges.v1_world import board, paths, refused


@pytest.mark.parametrize("verb", ["cancel", "unpark"])
def test_a_caller_without_a_name(tmp_path: Path, verb: str) -> None:
    with board(tmp_path) as at:
        task = at.create().json()
        told = refused(at.send("POST", f"/v1/tasks/{task['id']}/{verb}", None, json={"reason": "x"}), 422, "invalid")
        assert paths(told) == ["header.Pointsman-As"]
        assert at.told(f"/v1/tasks/{task['id']}")["version"] == task["version"]


@pytest.mark.parametrize(
    ("method", "path", "body"), [("POST", "/v1/holds", {"match": {"event": "claim"}, "reason": "x"}), ("DELETE", "/v1/holds/{hold}", None)]
)
def test_a_hold_of_nobody(tmp_path: Path, method: str, path: str, body: object) -> None:
    with board(tmp_path) as at:
        placed = at.send("POST", "/v1/holds", "olga", json={"match": {"event": "claim"}, "reason": "x"}).json()
        said = {} if body is None else {"json": body}
        assert paths(refused(at.send(method, path.format(hold=placed["id"]), None, **said), 422, "invalid")) == ["header.Pointsman-As"]
        assert [hold["id"] for hold in at.told("/v1/holds")["holds"]] == [placed["id"]]
