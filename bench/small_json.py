"""The HTTP floor: FastAPI parsing a small JSON body, answering a small JSON body, on the server settings of `serve`."""

import sys

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI(openapi_url=None)


class Submission(BaseModel):
    task_id: str
    agent_id: str


class Answer(BaseModel):
    id: str
    state: str
    owner: str | None
    passed: bool | None
    evidence: dict[str, object] | None


@app.post("/start-draft")
async def start_draft(body: Submission) -> Answer:
    return Answer(id=body.task_id, state="drafting", owner=body.agent_id, passed=False, evidence={"ok": False, "reason": "no draft"})


@app.get("/healthz")
async def healthz() -> dict[str, str]:
    return {"status": "ok"}


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), loop="uvloop", http="httptools", access_log=False, log_level="warning")
