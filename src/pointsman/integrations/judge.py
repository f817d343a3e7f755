"""Ask a model for an opinion, through pydantic-ai. Loaded when a judge is first asked; needs the extra `judge`.

A call is tried again when the service is busy, failing or out of reach, or when its answer is not a clear verdict: three
attempts in all, within the time of the check. Whatever else happens is no verdict. What was answered and what it cost is
kept in either case; the key is not, and neither is what a service says about a call that it refused.
"""

import asyncio
import math
import os
import re
from collections.abc import Callable
from dataclasses import replace

from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    ModelQuotaExceededError,
    ModelRequestRejectedError,
    UserError,
)
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from pointsman.kernel import opinion
from pointsman.kernel.chain import canonical
from pointsman.kernel.definition import Judge
from pointsman.kernel.ingest import clean
from pointsman.kernel.verdict import NoVerdict, Verdict
from pointsman.types import SECOND, Duration, Fields, Json

PAUSES_S = (0.5, 2.0)
"""Before the second attempt and before the third, unless the service says how long."""

NEVER_S = math.inf

OWN_SHARE = 0.95
"""Of the check's time. The rest is left to record what the attempts cost before the check itself is given up."""

LASTING = (ModelRequestRejectedError, ModelQuotaExceededError)
"""No such model, a wrong key, an empty account: another attempt would only meet them again."""

USUAL_KEY = {"openai": "OPENAI_API_KEY", "openai-responses": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
SHORTEST_KEY = 12
CUT_SHORT = ("length", "content_filter", "error")
_CODE = re.compile(r"[a-z0-9_.-]{1,64}")

_SCHEMA = dict(opinion.SCHEMA)
_ANSWER = ModelRequestParameters(
    output_mode="auto",
    output_tools=[
        ToolDefinition(
            name="verdict", parameters_json_schema=_SCHEMA, description="The verdict on the material.", strict=True, kind="output"
        )
    ],
    output_object=OutputObjectDefinition(json_schema=_SCHEMA, name="verdict", strict=True),
    allow_text_output=False,
)

Make = Callable[[str, str | None, str | None], Model]
"""From a model's name, a base URL and a key."""

MODELS: dict[str, Make] = {
    "openai": lambda name, url, key: OpenAIChatModel(name, provider=OpenAIProvider(url, key)),
    "openai-responses": lambda name, url, key: OpenAIResponsesModel(name, provider=OpenAIProvider(url, key)),
    "anthropic": lambda name, url, key: AnthropicModel(name, provider=AnthropicProvider(base_url=url, api_key=key)),
}


def ask(judge: Judge, timeout: Duration, inputs: Fields) -> Verdict:
    """The model's verdict; NoVerdict when there is no clear one. Blocks for at most `timeout`."""
    key = _key(judge)
    return asyncio.run(Hearing(judge, inputs, key).held(timeout / SECOND * OWN_SHARE))


def _key(judge: Judge) -> str | None:
    """None leaves it to the provider, which for a compatible service may do without."""
    variable = judge.api_key_env or USUAL_KEY[_provider(judge)[0]]
    key = os.environ.get(variable, "").strip() or None
    if key is None and judge.api_key_env:
        raise NoVerdict(f"no key: the environment variable {variable} is not set")
    if key is not None and not (key.isascii() and key.isprintable()):
        raise NoVerdict(f"no key: what the environment variable {variable} holds cannot be one")
    return key


def _provider(judge: Judge) -> tuple[str, str]:
    provider, _, name = judge.model.partition(":")
    return provider, name


class Hearing:
    """One question put to a model, and what asking it took so far."""

    def __init__(self, judge: Judge, inputs: Fields, key: str | None):
        self.judge = judge
        self.prompt = opinion.prompt(judge, inputs)
        self.key = key
        self.attempts = self.input_tokens = self.output_tokens = 0
        self.until = 0.0
        self.answer: str | None = None

    async def held(self, limit_s: float) -> Verdict:
        try:
            async with asyncio.timeout(limit_s) as clock, self.model() as model:
                self.until = clock.when() or 0.0
                return await self.until_clear(model, ModelSettings(max_tokens=self.judge.max_tokens, max_retries=0, timeout=limit_s))
        except TimeoutError:
            raise NoVerdict(f"the model gave no clear verdict within {limit_s:.3g} s", self.detail()) from None

    def model(self) -> Model:
        provider, name = _provider(self.judge)
        try:
            return MODELS[provider](name, self.judge.base_url, self.key)
        except UserError:
            raise NoVerdict(f"no key: the environment variable {USUAL_KEY[provider]} is not set") from None

    async def until_clear(self, model: Model, settings: ModelSettings) -> Verdict:
        pauses = iter(PAUSES_S)
        while True:
            why, pause_s = "the model's answer is not a clear verdict", next(pauses, NEVER_S)
            try:
                if verdict := self.heard(await self.request(model, settings)):
                    return replace(verdict, detail=self.detail())
            except Exception as error:  # noqa: BLE001 - what a service sends may make the libraries that read it raise anything
                why, pause_s = _why(error), _pause(error, pause_s)
            if asyncio.get_running_loop().time() + pause_s > self.until:
                raise NoVerdict(f"{why}, after {self.attempts} attempt{'s' * (self.attempts > 1)}", self.detail())
            await asyncio.sleep(pause_s)

    async def request(self, model: Model, settings: ModelSettings) -> ModelResponse:
        self.attempts += 1
        message = ModelRequest([UserPromptPart(self.prompt.material)], instructions=self.prompt.instructions)
        return await model_request(model, [message], model_settings=settings, model_request_parameters=_ANSWER, instrument=False)

    def heard(self, response: ModelResponse) -> Verdict | None:
        self.input_tokens += response.usage.input_tokens
        self.output_tokens += response.usage.output_tokens
        said = _said(response)
        self.answer = self.without_key(clean(said))
        return None if response.finish_reason in CUT_SHORT else opinion.read(self.answer)

    def without_key(self, text: str) -> str:
        """A service that repeats the key it was sent must not bring it into the history. What is shorter than any real
        key (a local service takes any word) is no secret, and may well be a word of the answer."""
        return text.replace(self.key, "[key]") if self.key and len(self.key) >= SHORTEST_KEY else text

    def detail(self) -> Json:
        usage = {"input_tokens": self.input_tokens, "output_tokens": self.output_tokens}
        counted = self.input_tokens + self.output_tokens > 0
        return {
            "model": self.judge.model,
            "prompt_digest": self.prompt.digest,
            "answer": self.answer,
            "usage": dict(usage) if counted else None,
            "cost": opinion.cost(self.judge, **usage) if counted else None,
            "attempts": self.attempts,
        }


def _said(response: ModelResponse) -> str:
    """The raw answer: what it called `verdict` with, or else its text. Two calls are not one answer."""
    calls = [part.args or "" for part in response.parts if isinstance(part, ToolCallPart) and part.tool_name == "verdict"]
    texts = [part.content for part in response.parts if isinstance(part, TextPart)]
    return "\n".join(part if isinstance(part, str) else canonical(part) for part in calls or texts)


def _why(error: Exception) -> str:
    """In our words: a service's own may repeat what it was sent."""
    code = error.provider_error_code or error.provider_error_type if isinstance(error, ModelAPIError) else None
    named = f", {code}" if code and _CODE.fullmatch(code) else ""
    match error:
        case ModelHTTPError(status_code=status):
            return f"the model's service answered {status}{named}"
        case ModelConnectionError():
            return "the model's service cannot be reached"
        case _:
            return f"the model's service answered what cannot be read ({type(error).__name__}{named})"


def _pause(error: Exception, planned_s: float) -> float:
    """How long to wait before the next attempt."""
    if isinstance(error, LASTING) or planned_s == NEVER_S:
        return NEVER_S
    asked_s = error.retry_after if isinstance(error, ModelAPIError) else None
    return planned_s if asked_s is None else asked_s
