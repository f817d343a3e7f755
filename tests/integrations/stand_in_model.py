"""A model on loopback that speaks the wire formats of OpenAI (Chat Completions and Responses) and Anthropic (Messages).

What it answers is a script: one reply for each request, the last one for all further requests. It refuses what the real
services refuse: a call without a key, without its required members, to a path they do not have.
"""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-test-canary-5f2c"
TOKENS = (1000, 50)
"""What every answer says it used: tokens in and out."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as its model would see it."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    instructions: str
    material: str


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer with `text`: as a call of the tool that was offered, if one was and it is `called`, else as plain text.
    Unless `status` is 200, an error of the service."""

    text: str = ""
    status: int = 200
    called: bool = True
    cut: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    held_back: threading.Event | None = None


Script = Reply | Callable[[Asked], Reply]

BUSY = Reply("rate limited", 429, headers={"retry-after-ms": "1"})
BROKEN = Reply("internal error", 500, headers={"retry-after-ms": "1"})
NONSENSE = Reply("I would rather talk about the weather.", called=False)


def says(verdict: str, reason: str = "because") -> Reply:
    return Reply(json.dumps({"verdict": verdict, "reason": reason}))


class StandIn:
    def __init__(self, url: str, script: Sequence[Script]):
        self.url = url
        self.script = list(script)
        self.asked: list[Asked] = []
        self.lock = threading.Lock()

    @property
    def openai(self) -> str:
        return f"{self.url}/v1"

    @property
    def anthropic(self) -> str:
        return self.url

    def reply(self, asked: Asked) -> Reply:
        with self.lock:
            self.asked.append(asked)
            reply = self.script[min(len(self.asked), len(self.script)) - 1]
        return reply if isinstance(reply, Reply) else reply(asked)


@contextmanager
def stand_in(*script: Script) -> Iterator[StandIn]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            wire = WIRES.get(self.path.partition("?")[0])
            headers = {name.lower(): value for name, value in self.headers.items()}
            wrong = "no such path" if wire is None else wire.fault(headers, body)
            if wire is None or wrong:
                return self.tell(400, {"type": "error", "error": {"type": "invalid_request_error", "message": wrong}})
            reply = model.reply(Asked(self.path, headers, body, *wire.prompt(body)))
            if reply.held_back:
                reply.held_back.wait(30)
            if reply.status != 200:
                return self.tell(reply.status, wire.error(reply), reply.headers)
            return self.tell(200, reply.raw or wire.answer(body, reply), reply.headers)

        def tell(self, status: int, told: dict[str, Any] | bytes, more: dict[str, str] | None = None) -> None:
            text = told if isinstance(told, bytes) else json.dumps(told).encode()
            try:
                self.send_response(status)
                for name, value in {"content-type": "application/json", "content-length": str(len(text)), **(more or {})}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text)
            except OSError:
                self.close_connection = True  # whoever asked has gone

        def log_message(self, format: str, *args: Any) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        model = StandIn(f"http://127.0.0.1:{server.server_address[1]}", script)
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        serving.start()
        try:
            yield model
        finally:
            server.shutdown()
            serving.join()


@dataclass(frozen=True, slots=True)
class Wire:
    fault: Callable[[dict[str, str], dict[str, Any]], str | None]
    prompt: Callable[[dict[str, Any]], tuple[str, str]]
    answer: Callable[[dict[str, Any], Reply], dict[str, Any]]
    error: Callable[[Reply], dict[str, Any]]


def _text(content: str | list[dict[str, Any]]) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def _missing(body: dict[str, Any], *names: str) -> str | None:
    return next((f"{name}: Field required" for name in names if name not in body), None)


def _bearer(headers: dict[str, str]) -> str | None:
    return None if headers.get("authorization", "").startswith("Bearer ") else "no key"


def _openai_error(reply: Reply) -> dict[str, Any]:
    return {"error": {"message": f"{reply.text} {KEY}", "type": "some_error", "param": None, "code": None}}


# ── OpenAI Chat Completions ──────────────────────────────────────────────────────────────────────────────────────


def _chat_fault(headers: dict[str, str], body: dict[str, Any]) -> str | None:
    return _bearer(headers) or _missing(body, "model", "messages")


def _chat_prompt(body: dict[str, Any]) -> tuple[str, str]:
    told = {role: [_text(item["content"]) for item in body["messages"] if item["role"] in roles] for role, roles in ROLES.items()}
    return "\n".join(told["system"]), "\n".join(told["user"])


ROLES = {"system": ("system", "developer"), "user": ("user",)}


def _chat_answer(body: dict[str, Any], reply: Reply) -> dict[str, Any]:
    called = reply.called and "tools" in body
    message: dict[str, Any] = {"role": "assistant", "content": None if called else reply.text, "refusal": None}
    if called:
        name = body["tools"][0]["function"]["name"]
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": {"name": name, "arguments": reply.text}}]
    reason = "length" if reply.cut else "tool_calls" if called else "stop"
    usage = {"prompt_tokens": TOKENS[0], "completion_tokens": TOKENS[1], "total_tokens": sum(TOKENS)}
    choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": body["model"], "choices": [choice], "usage": usage}


# ── OpenAI Responses ─────────────────────────────────────────────────────────────────────────────────────────────


def _responses_fault(headers: dict[str, str], body: dict[str, Any]) -> str | None:
    return _bearer(headers) or _missing(body, "model", "input")


def _responses_prompt(body: dict[str, Any]) -> tuple[str, str]:
    users = [_text(item["content"]) for item in body["input"] if item.get("role") == "user"]
    return body.get("instructions") or "", "\n".join(users)


def _responses_answer(body: dict[str, Any], reply: Reply) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "output_text", "text": reply.text, "annotations": []}
    output: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    if reply.called and "tools" in body:
        name = body["tools"][0]["name"]
        output = {"id": "fc_1", "type": "function_call", "call_id": "c1", "name": name, "arguments": reply.text, "status": "completed"}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": body["model"],
        "status": "incomplete" if reply.cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if reply.cut else None,
        "error": None,
        "output": [output],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": {"input_tokens": TOKENS[0], "output_tokens": TOKENS[1], "total_tokens": sum(TOKENS), **details},
    }


# ── Anthropic Messages ───────────────────────────────────────────────────────────────────────────────────────────


def _messages_fault(headers: dict[str, str], body: dict[str, Any]) -> str | None:
    if "anthropic-version" not in headers:
        return "anthropic-version: header is required"
    return ("x-api-key" not in headers and _bearer(headers)) or _missing(body, "model", "max_tokens", "messages")


def _messages_prompt(body: dict[str, Any]) -> tuple[str, str]:
    return _text(body.get("system", "")), "\n".join(_text(item["content"]) for item in body["messages"])


def _messages_answer(body: dict[str, Any], reply: Reply) -> dict[str, Any]:
    called = reply.called and "tools" in body
    block: dict[str, Any] = {"type": "text", "text": reply.text}
    if called:
        block = {"type": "tool_use", "id": "toolu_1", "name": body["tools"][0]["name"], "input": json.loads(reply.text)}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [block],
        "stop_reason": "max_tokens" if reply.cut else "tool_use" if called else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": TOKENS[0], "output_tokens": TOKENS[1]},
    }


def _messages_error(reply: Reply) -> dict[str, Any]:
    kind = {429: "rate_limit_error", 401: "authentication_error", 529: "overloaded_error"}.get(reply.status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": f"{reply.text} {KEY}"}}


WIRES = {
    "/v1/chat/completions": Wire(_chat_fault, _chat_prompt, _chat_answer, _openai_error),
    "/v1/responses": Wire(_responses_fault, _responses_prompt, _responses_answer, _openai_error),
    "/v1/messages": Wire(_messages_fault, _messages_prompt, _messages_answer, _messages_error),
}
