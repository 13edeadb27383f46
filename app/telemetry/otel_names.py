"""The names of OpenTelemetry's conventions for requests to models, and what of a request goes under them.

Attributes are those of opentelemetry-semantic-conventions 0.66b (semantic conventions 1.44). Nothing of a
message's text is among them. Of those conventions, all still in development, a newer draft renames the
metrics (open-telemetry/semantic-conventions-genai, `client-inference.md`): the standard variable
`OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental` asks for its names instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from yarl import URL

if TYPE_CHECKING:
    from providers.base import Provider
    from translators.ir import Usage

    from ..plan import Plan
    from ..request import Request
    from .watch import Outcome

Value = str | bool | int | float | Sequence[str]
Attributes = dict[str, Value]

HOSTS: Sequence[tuple[str, str]] = (
    ("api.openai.com", "openai"),
    (".openai.azure.com", "azure.ai.openai"),
    (".services.ai.azure.com", "azure.ai.inference"),
    ("api.anthropic.com", "anthropic"),
    ("generativelanguage.googleapis.com", "gcp.gemini"),
    ("aiplatform.googleapis.com", "gcp.vertex_ai"),
    ("-aiplatform.googleapis.com", "gcp.vertex_ai"),
    (".amazonaws.com", "aws.bedrock"),
    ("api.groq.com", "groq"),
    ("api.deepseek.com", "deepseek"),
    ("api.mistral.ai", "mistral_ai"),
    ("api.perplexity.ai", "perplexity"),
    ("api.x.ai", "x_ai"),
    ("api.cohere.com", "cohere"),
    ("api.cohere.ai", "cohere"),
    (".ml.cloud.ibm.com", "ibm.watsonx.ai"),
)
"""Hosts, or their ends from a dot or a dash on, and `gen_ai.provider.name`.

Any other of kind openai speaks OpenAI's API, and is `openai`.
"""

_API_TYPES = {"chat": "chat_completions", "responses": "responses", "open_responses": "responses"}

_NUMBERS: Sequence[tuple[str, type, Sequence[str]]] = (
    ("gen_ai.request.temperature", float, ("temperature",)),
    ("gen_ai.request.top_p", float, ("top_p",)),
    ("gen_ai.request.frequency_penalty", float, ("frequency_penalty",)),
    ("gen_ai.request.presence_penalty", float, ("presence_penalty",)),
    ("gen_ai.request.seed", int, ("seed",)),
    ("gen_ai.request.max_tokens", int, ("max_output_tokens", "max_completion_tokens", "max_tokens")),
)
"""Attribute, its type, and where a client's request has it."""

_ID = re.compile(rb'"id"\s*:\s*"([^"\\]{1,128})"')
_MODEL = re.compile(rb'"model"\s*:\s*"([^"\\]{1,256})"')
_FINISH = re.compile(rb'"(?:finish_reason|done_reason)"\s*:\s*"(\w{1,64})"')
_INCOMPLETE = re.compile(rb'"incomplete_details"\s*:\s*\{\s*"reason"\s*:\s*"(\w{1,64})"')
_COMPLETED = re.compile(rb'"status"\s*:\s*"completed"')
_HEAD = 4096
_TAIL = 1 << 18
"""Bytes at the beginning and the end of a reply in which those are looked for."""


def operation(plan: Plan) -> str:
    return "embeddings" if plan.request.shape is None else "chat"


def provider_name(provider: Provider) -> str:
    if provider.kind != "openai":
        return provider.kind
    host = URL(provider.origin).host or ""
    return next((name for known, name in HOSTS if _is(host, known)), "openai")


def _is(host: str, known: str) -> bool:
    return host.endswith(known) if known[0] in ".-" else host == known


def address(origin: str) -> Attributes:
    url = URL(origin)
    if url.host is None or url.port is None:
        return {}
    return {"server.address": url.host, "server.port": url.port}


def asked(plan: Plan, attempt: int, retries: int) -> Attributes:
    """What is known before the backend is asked; `attempt` from 1."""
    request, provider = plan.request, plan.target.provider
    found: Attributes = {
        "gen_ai.operation.name": operation(plan),
        "gen_ai.provider.name": provider_name(provider),
        "gen_ai.request.model": plan.target.model,
        **address(provider.origin),
        **_parameters(request),
        "dragoman.provider": provider.name,
        "dragoman.surface": plan.surface,
        "dragoman.lane": plan.lane,
        "dragoman.attempt": attempt,
    }
    if plan.surface in _API_TYPES:
        found["openai.api.type"] = _API_TYPES[plan.surface]
    if retries:
        found["http.request.resend_count"] = retries
    return found


def _parameters(request: Request) -> Attributes:
    body, found = request.body, Attributes()
    for name, kind, keys in _NUMBERS:
        value = next((body[key] for key in keys if body.get(key) is not None), None)
        if isinstance(value, int | float) and not isinstance(value, bool):
            found[name] = kind(value)
    if request.stream:
        found["gen_ai.request.stream"] = True
    if isinstance(count := body.get("n"), int) and count != 1:
        found["gen_ai.request.choice.count"] = count
    found |= dict(_words(body))
    if request.shape is None:
        found |= _of_embeddings(body)
    elif (output := _output_type(body)) is not None:
        found["gen_ai.output.type"] = output
    return found


def _words(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    reasoning = body.get("reasoning")
    effort = reasoning.get("effort") if isinstance(reasoning, dict) else body.get("reasoning_effort")
    told = (
        ("gen_ai.request.reasoning.level", effort),
        ("gen_ai.request.previous_response.id", body.get("previous_response_id")),
        ("gen_ai.conversation.id", _conversation(body.get("conversation"))),
        ("openai.request.service_tier", body.get("service_tier")),
    )
    yield from ((name, value[:128]) for name, value in told if isinstance(value, str) and value)


def _conversation(value: Any) -> Any:
    return value.get("id") if isinstance(value, dict) else value


def _of_embeddings(body: Mapping[str, Any]) -> Attributes:
    found: Attributes = {}
    if isinstance(dimensions := body.get("dimensions"), int):
        found["gen_ai.embeddings.dimension.count"] = dimensions
    if isinstance(form := body.get("encoding_format"), str):
        found["gen_ai.request.encoding_formats"] = [form[:32]]
    return found


def _output_type(body: Mapping[str, Any]) -> str | None:
    """`json` or `text`, where the client says which."""
    text = body.get("text")
    form = body.get("response_format") or (text.get("format") if isinstance(text, dict) else None)
    kind = form.get("type") if isinstance(form, dict) else None
    return {"json_object": "json", "json_schema": "json", "text": "text"}.get(str(kind))


def answered(outcome: Outcome, usage: Usage | None, latest: bool) -> Attributes:
    """What is known when the reply has ended."""
    found: Attributes = {}
    if outcome.status:
        found["http.response.status_code"] = outcome.status
    if (kind := error_type(outcome)) is not None:
        found["error.type"] = kind
    if usage is not None:
        written = "cache_write" if latest else "cache_creation"
        counts = {
            "input_tokens": usage.input,
            "output_tokens": usage.output,
            "cache_read.input_tokens": usage.cached,
            f"{written}.input_tokens": usage.cache_write,
            "reasoning.output_tokens": usage.reasoning,
        }
        always = ("input_tokens", "output_tokens")
        found |= {f"gen_ai.usage.{name}": n for name, n in counts.items() if n or name in always}
    if outcome.heard and 200 <= outcome.status < 300:
        found |= _reply(outcome.heard)
    return found


def error_type(outcome: Outcome) -> str | None:
    """The backend's status, else the kind of failure; `cancelled`: the client went away."""
    if outcome.gone:
        return "cancelled"
    if outcome.status >= 400:
        return str(outcome.status)
    return None if outcome.error is None else outcome.error.kind


def _reply(heard: Sequence[bytes]) -> Attributes:
    """What a reply says of itself, looked for without reading it: in its first bytes and its last ones."""
    head, last = heard[0][:_HEAD], b"".join(heard)[-_TAIL:]
    found: Attributes = {}
    if match := _ID.search(head):
        found["gen_ai.response.id"] = match[1].decode("utf-8", "replace")
    if match := _MODEL.search(head) or _MODEL.search(last):
        found["gen_ai.response.model"] = match[1].decode("utf-8", "replace")
    if reason := _finish(last):
        found["gen_ai.response.finish_reasons"] = [reason]
    return found


def _finish(last: bytes) -> str | None:
    for pattern in (_INCOMPLETE, _FINISH):
        matches = pattern.findall(last)
        if matches:
            return str(matches[-1].decode())
    return "stop" if _COMPLETED.search(last) else None
