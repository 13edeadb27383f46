"""Bug reports of other gateways and what the product promises, as data with the right values.

tests/cases/bug_reports.jsonl, reported bugs, and tests/cases/features.jsonl, one a line:
    id, why, source    the behaviour; what goes wrong without it; where that was reported
    kind               request | reply | stream | tools | usage | errors | reasoning | sanitizer | security
    backend            a provider of PROVIDERS below
    model              the backend's name of the model, when the profile depends on it
    overrides          the provider's own `[providers.overrides]`
    route              default `/v1/responses`
    headers            of the client's request, over the usual ones
    send               the client's body, or a list of bodies sent one after another; in `input`,
                       "<output>" stands for the output items of the reply before
    answer             the backend's replies (see `_reply`), in order; absent: an ordinary one
    upstream, client   checks (see checks.py); `upstream` sees `{requests, body, headers}`, the last
                       two of the last request; `client` sees the last reply (views.py), and
                       `replies`: all of them

All cases run against one gateway process.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from tests.backends import replies
from tests.backends.gateway import Gateway, config_text
from tests.backends.loopback import Reply, Request
from tests.backends.scripted import ScriptedBackend, Step
from tests.contract.checks import failures
from tests.contract.views import TERMINAL, look

Json = dict[str, Any]
CASES: list[Json] = [
    orjson.loads(line)
    for name in ("bug_reports", "features")
    for line in (Path(__file__).parents[1] / f"cases/{name}.jsonl").read_text().splitlines()
]
CLIENT_KEY, BACKEND_KEY, WRONG_KEY = "client-6f1d93a7c2", "backend-b85e0c4d71", "wrong-3c9a71f0e8"
PROVIDERS: Json = {
    "chat": {"kind": "openai", "wire": "chat"},
    "responses": {"kind": "openai", "wire": "responses"},
    "databricks": {"kind": "databricks", "wire": "chat"},
}
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
CODEX_CODES = (
    *("context_length_exceeded", "insufficient_quota", "server_is_overloaded"),
    *("slow_down", "usage_not_included", "cyber_policy"),
)
"""Codes of a failed response that Codex acts on and the SDK's enum does not have."""


class Stage:
    """The gateway, the backend behind all its providers, and a client."""

    def __init__(self, backend: ScriptedBackend, gateway: Gateway) -> None:
        self.backend, self.gateway = backend, gateway
        self.client = gateway.client(headers={"authorization": f"Bearer {CLIENT_KEY}"})

    def play(self, case: Json) -> tuple[Json, Json]:
        """What the backend got and what the client got."""
        model = backend_model(case)
        self.backend.clear()
        self.backend.play(*map(_step, case.get("answer", [])), model=model)
        views: list[Json] = []
        for body in _steps(case):
            views.append(self._send(case, {**body, "model": f"{provider_name(case)}/{model}"}, views))
        last = self.backend.requests[-1] if self.backend.requests else None
        upstream = {
            "requests": self.backend.bodies(),
            "body": last.json if last else None,
            "headers": dict(last.headers) if last else None,
        }
        return upstream, {**views[-1], "replies": views}

    def _send(self, case: Json, body: Json, before: list[Json]) -> Json:
        if isinstance(body.get("input"), list) and "<output>" in body["input"]:
            at = body["input"].index("<output>")
            body["input"] = [*body["input"][:at], *before[-1]["final"]["output"], *body["input"][at + 1 :]]
        route, headers = case.get("route", "/v1/responses"), case.get("headers", {})
        return look(self.client.post(route, json=body, headers=headers))


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with ScriptedBackend() as backend:
        config = config_text(list(_providers(backend.origin)), server={"api_keys": [CLIENT_KEY]})
        with Gateway(tmp_path_factory.mktemp("bugs"), config) as gateway:
            stage = Stage(backend, gateway)
            with stage.client:
                yield stage


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case(case: Json, stage: Stage) -> None:
    upstream, client = stage.play(case)
    wrong = failures(case.get("upstream", []), upstream) + failures(case.get("client", []), client)
    wrong += [line for view in client["replies"] for line in _broken(view)]
    assert not wrong, "\n".join([case["why"], *wrong, f"the client got {client['raw'][:1500]}"])


def test_case_ids_are_unique() -> None:
    ids = [case["id"] for case in CASES]
    assert sorted(set(ids)) == sorted(ids)


def test_no_key_is_logged(stage: Stage) -> None:
    """At the debug level, after requests that work, fail and are not let in: no piece of any key."""
    body = {"model": f"chat/{backend_model(CASES[0])}", "input": "x"}
    stage.client.post("/v1/responses", json=body)
    refused = stage.client.post("/v1/responses", json=body, headers={"authorization": f"Bearer {WRONG_KEY}"})
    assert refused.status_code == 401
    log = stage.gateway.log()
    assert "/v1/responses" in log
    for key in (CLIENT_KEY, BACKEND_KEY, WRONG_KEY):
        pieces = {key[at : at + 8] for at in range(len(key) - 7)} - {"backend-"}
        assert not [piece for piece in pieces if piece in log or piece in refused.text]


# --- one case --------------------------------------------------------------------------


def provider_name(case: Json) -> str:
    return f"{case['backend']}-{CASES.index(case)}" if "overrides" in case else case["backend"]


def backend_model(case: Json) -> str:
    return str(case.get("model", f"model-{CASES.index(case)}"))


def _providers(origin: str) -> Iterator[Json]:
    for name, rest in PROVIDERS.items():
        yield {"name": name, **_place(rest, origin)}
    for case in CASES:
        if "overrides" in case:
            place = _place(PROVIDERS[case["backend"]], origin)
            yield {"name": provider_name(case), **place, "overrides": case["overrides"]}


def _place(rest: Json, origin: str) -> Json:
    base = origin if rest["kind"] == "databricks" else f"{origin}/v1"
    return {**rest, "base_url": base, "api_key": BACKEND_KEY}


def _steps(case: Json) -> list[Json]:
    send = case["send"]
    return send if isinstance(send, list) else [send]


def _step(spec: Json) -> Step:
    """`when`: only for requests whose body has this text; `calls`: a call of each such tool offered."""
    if "when" in spec:
        return lambda request: _reply(spec) if spec["when"] in request.body.decode() else None
    if "calls" in spec:
        return lambda request: replies.json_reply(_calling(request, spec["calls"]))
    return _reply(spec)


def _calling(request: Request, wanted: Json) -> Json:
    names = [tool["function"]["name"] for tool in request.json["tools"]]
    chosen = [name for name in names if wanted["named"] in name]
    calls = [replies.ToolUse(f"call_{at}", name, wanted["arguments"]) for at, name in enumerate(chosen)]
    return replies.chat_completion("", calls)


def _reply(spec: Json) -> Reply:
    """`json` or `sse`, whole; or short forms of ordinary ones.

    message   a chat.completion with this message; `finish`, `usage`
    chunks    a chat stream: a delta object, `[delta, finish_reason]`, "usage", text, or `{"raw": ...}`
    response  a response object over an ordinary one
    events    a Responses stream; an event with a `response` gets an ordinary one below it
    """
    headers = spec.get("headers")
    if "chunks" in spec or "events" in spec or "sse" in spec:
        return replies.sse_reply(
            [
                *map(_frame, spec.get("chunks", [])),
                *map(_event, spec.get("events", [])),
                *spec.get("sse", []),
            ],
            replies.Framing(**spec.get("framing", {})),
            end=spec.get("end", "whole"),
            headers=headers,
        )
    body = spec.get("json")
    if "message" in spec:
        message = {"role": "assistant", **spec["message"]}
        choice = {"index": 0, "message": message, "finish_reason": spec.get("finish", "stop")}
        choice |= {key: spec[key] for key in ("logprobs",) if key in spec}
        body = {**replies.chat_completion(""), "choices": [choice], "usage": spec.get("usage", USAGE)}
    elif "response" in spec:
        body = {**replies.response_object([]), **spec["response"]}
    return replies.json_reply(body, spec.get("status", 200), headers)


USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}


def _frame(chunk: Any) -> Any:
    if chunk == "usage":
        return {**replies.chat_chunk({}), "choices": [], "usage": USAGE}
    if isinstance(chunk, str):
        return chunk
    if isinstance(chunk, list):
        return replies.chat_chunk(chunk[0], chunk[1])
    return chunk["raw"] if "raw" in chunk else replies.chat_chunk(chunk)


def _event(event: Json) -> Json:
    if "response" not in event:
        return event
    return {**event, "response": {**replies.response_object([]), **event["response"]}}


# --- what holds for every reply --------------------------------------------------------


def _broken(view: Json) -> Iterator[str]:
    if view["status"] >= 400:
        error = (view["body"] or {}).get("error")
        if not isinstance(error, dict) or not error.keys() >= {"message", "type", "param", "code"}:
            yield f"not an error body: {view['raw'][:300]}"
    elif view["stream"] and view["types"][-1:] != [None]:
        yield from _broken_responses_stream(view)
    elif view["stream"] and not (view["error"] or (view["finish"] and view["done"])):
        yield f"a chat stream without an end: {view['raw'][-300:]}"


def _broken_responses_stream(view: Json) -> Iterator[str]:
    numbers = [event["sequence_number"] for event in view["events"]]
    if numbers != list(range(len(numbers))):
        yield f"sequence numbers are {numbers}"
    if [kind for kind in view["types"] if kind in TERMINAL] != view["types"][-1:]:
        yield f"not exactly one terminal event, last: {view['types']}"
    for event in view["events"]:
        error = event["response"]["error"] if event["type"] == "response.failed" else None
        if error and error["code"] in CODEX_CODES:
            known = {**event["response"], "error": {**error, "code": "server_error"}}
            EVENT.validate_python({**event, "response": known})
        else:
            EVENT.validate_python(event)
