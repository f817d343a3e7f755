"""`pointsman.http.app(pm)` beside one's own routes; and its figures."""

import asyncio
from pathlib import Path

import httpx
from fastapi import FastAPI

from edges.v1_world import FIELDS, board
from pointsman import Pointsman
from pointsman.http import app


def test_it_is_mounted_beside_ones_own_routes(tmp_path: Path) -> None:
    async def run(pm: Pointsman) -> None:
        mine = FastAPI()
        mine.add_api_route("/mine", lambda: "mine")
        mine.mount("/work", app(pm))
        async with httpx.AsyncClient(transport=httpx.ASGITransport(mine), base_url="http://localhost:8000") as client:
            assert (await client.get("/mine")).json() == "mine"
            made = await client.post("/work/v1/tasks", json={"fields": FIELDS}, headers={"Pointsman-As": "ann"})
            assert made.status_code == 201
            assert made.headers["location"] == f"/work/v1/tasks/{made.json()['id']}"
            found = await client.get(made.headers["location"], headers={"Pointsman-As": "ann"})
            assert (found.status_code, found.json()) == (200, made.json())
            claimed = await client.post(f"{made.headers['location']}/events/claim", json={}, headers={"Pointsman-As": "bob"})
            assert claimed.json()["state"] == "claimed"
            assert (await client.get("/work/v1/nonsense")).json()["code"] == "unknown_path"
            assert (await client.get("/v1/tasks")).json() == {"detail": "Not Found"}, "only where it is mounted"
            evil = await client.get("/work/v1/tasks", headers={"Host": "evil.example"})
            assert (evil.status_code, evil.json()["code"]) == (421, "misdirected")
            assert (await client.get("/work/openapi.json")).json()["paths"]["/v1/tasks"]

    with Pointsman(f"sqlite:///{tmp_path}/work.db") as pm:
        asyncio.run(run(pm))
        assert pm.list()[0].state == "claimed"


def test_figures(tmp_path: Path) -> None:
    with board(tmp_path) as at:
        task = at.bring("awaiting_approval")
        at.create()
        at.propose(task["id"], "complete", "bob", epoch=1)
        at.get("/v1/tasks/nonsense")
        at.get("/v1/nonsense")
        at.send("PROPFIND", "/v1/tasks")
        at.send("POST", "/claim", json={"agent_id": "bob", "task_id": task["id"]})
        answer = at.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    lines = answer.text.splitlines()
    samples = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert {line.split()[2] for line in lines if line.startswith("# TYPE")} == {line.split("{")[0].split(" ")[0] for line in samples}
    assert samples == {
        'pointsman_requests_total{route="",method="GET",status="404"}': "1",
        'pointsman_requests_total{route="/claim",method="POST",status="409"}': "1",
        'pointsman_requests_total{route="/v1/tasks",method="",status="405"}': "1",
        'pointsman_requests_total{route="/v1/tasks",method="POST",status="201"}': "2",
        'pointsman_requests_total{route="/v1/tasks/{id}",method="GET",status="422"}': "1",
        'pointsman_requests_total{route="/v1/tasks/{id}/events/{event}",method="POST",status="200"}': "3",
        'pointsman_requests_total{route="/v1/tasks/{id}/events/{event}",method="POST",status="409"}': "1",
        'pointsman_decisions_total{door="flat",code="already_claimed"}': "1",
        'pointsman_decisions_total{door="http",code="accepted"}': "5",
        'pointsman_decisions_total{door="http",code="wrong_state"}': "1",
        "pointsman_feed_number": "0",
        "pointsman_proposals_pending": "0",
        'pointsman_tasks_waiting{machine="tasks",state="queued"}': "1",
    }
