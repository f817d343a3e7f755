"""A model that follows a script: it answers the Responses and Chat Completions APIs as coding agents call them.

A script is a function of the tool results that the conversation holds so far. It returns a `Call` or the last words.
"""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Call:
    tool: str
    arguments: Json


Script = Callable[[Sequence[Json]], Call | str]
NOTHING_TO_DO = "I was offered no tools."


class Model(ThreadingHTTPServer):
    """`offered` are the tools of the last request, `faults` what went wrong while following the script."""

    daemon_threads = True

    def __init__(self, script: Script):
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = script
        self.offered: list[Json] = []
        self.faults: list[str] = []
        self.heard: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def says(self, results: Sequence[str], tools: Sequence[Json]) -> Call | str:
        if not tools:  # a request for a title or the like
            return NOTHING_TO_DO
        self.offered, self.heard = list(tools), list(results)
        try:
            said = self.script([told(result) for result in results])
            if isinstance(said, Call):
                chosen(said.tool, tools)
        except (LookupError, ValueError, TypeError) as fault:  # a script that fails must end the conversation, not hang it
            self.faults.append(repr(fault))
            return f"The script failed: {fault!r}"
        return said


@contextmanager
def running(script: Script) -> Iterator[Model]:
    model = Model(script)
    thread = threading.Thread(target=model.serve_forever)
    thread.start()
    try:
        yield model
    finally:
        model.shutdown()
        thread.join()
        model.server_close()


def told(result: str) -> Json:
    """The JSON object in what a client made of a tool's result: some wrap it in words, some in the result around it."""
    decoder = json.JSONDecoder()
    for start, letter in enumerate(result):
        if letter not in "[{":
            continue
        try:
            found = decoder.raw_decode(result, start)[0]
        except ValueError:
            continue
        return unwrapped(found)
    raise ValueError(f"no JSON in {result!r}")


def unwrapped(found: Any) -> Json:
    if isinstance(found, list):
        return told(words(found))
    if isinstance(found.get("structuredContent"), dict):
        return found["structuredContent"]
    if isinstance(found.get("content"), list):
        return told(words(found["content"]))
    return found


def words(content: Any) -> str:
    """The text of a message's content, in whichever form an API allows."""
    if isinstance(content, list):
        return "\n".join(words(part) for part in content)
    if isinstance(content, dict):
        return words(content.get("text", content.get("content", "")))
    return str(content or "")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Model

    def log_message(self, *_: Any) -> None:
        """Say nothing: what goes wrong is in `faults`."""

    def do_GET(self) -> None:
        self._send(b'{"object":"list","data":[{"id":"scripted","object":"model"}],"models":[]}', "application/json")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        events = responses(self.server, body) if self.path.endswith("/responses") else completions(self.server, body)
        self._send("".join(events).encode(), "text/event-stream")

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


# ── OpenAI Responses, as Codex speaks it ─────────────────────────────────────────────────────────────────────────


def responses(model: Model, body: Json) -> Iterator[str]:
    results = [words(item["output"]) for item in body["input"] if item.get("type") == "function_call_output"]
    offered = list(functions(body.get("tools", ())))
    item = output(model.says(results, offered), offered, len(results))
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    response = {"id": f"resp_{len(results)}", "object": "response", "status": "completed", "output": [item], "usage": usage}
    started = {**response, "status": "in_progress", "output": []}
    events = (
        {"type": "response.created", "response": started},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response},
    )
    for number, event in enumerate(events):
        yield f"event: {event['type']}\ndata: {json.dumps({**event, 'sequence_number': number})}\n\n"


def functions(tools: Sequence[Json]) -> Iterator[Json]:
    """Functions by name; those of a server may stand in a namespace of their own."""
    for tool in tools:
        if tool.get("type") == "namespace":
            yield from ({**inner, "namespace": tool["name"]} for inner in tool["tools"])
        elif tool.get("type") == "function":
            yield tool


def output(said: Call | str, offered: Sequence[Json], number: int) -> Json:
    if isinstance(said, str):
        content = [{"type": "output_text", "text": said, "annotations": []}]
        return {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": content}
    tool = chosen(said.tool, offered)
    namespace = {"namespace": tool["namespace"]} if "namespace" in tool else {}
    call = {"name": tool["name"], "arguments": json.dumps(said.arguments), **namespace}
    return {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "status": "completed", **call}


def chosen(name: str, offered: Sequence[Json]) -> Json:
    """The tool under the name that the client gave it: with the server's before it."""
    found = [tool for tool in offered if tool["name"] == name or tool["name"].endswith(f"_{name}")]
    if not found:
        raise LookupError(f"{name} is not offered")
    return found[0]


# ── OpenAI Chat Completions, as opencode speaks it ───────────────────────────────────────────────────────────────


def completions(model: Model, body: Json) -> Iterator[str]:
    results = [words(message["content"]) for message in body["messages"] if message["role"] == "tool"]
    offered = [tool["function"] for tool in body.get("tools", ())]
    said = model.says(results, offered)
    end = "stop" if isinstance(said, str) else "tool_calls"
    chunk = {"id": f"chat_{len(results)}", "object": "chat.completion.chunk", "created": 0, "model": "scripted"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    for choice in ({"delta": delta(said, offered, len(results)), "finish_reason": None}, {"delta": {}, "finish_reason": end}):
        yield f"data: {json.dumps({**chunk, 'choices': [{'index': 0, **choice}], 'usage': usage})}\n\n"
    yield "data: [DONE]\n\n"


def delta(said: Call | str, offered: Sequence[Json], number: int) -> Json:
    if isinstance(said, str):
        return {"role": "assistant", "content": said}
    function = {"name": chosen(said.tool, offered)["name"], "arguments": json.dumps(said.arguments)}
    return {"role": "assistant", "tool_calls": [{"index": 0, "id": f"call_{number}", "type": "function", "function": function}]}
