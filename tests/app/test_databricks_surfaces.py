"""A workspace with its three surfaces: who is asked where, how bodies are cleaned, what errors become."""

from __future__ import annotations

from typing import Any

import httpx
import orjson
import pytest

from tests.app.conftest import Serve, Served
from tests.backends.loopback import Reply, Request
from tests.backends.replies import json_reply, sse_reply
from tests.backends.scripted import ScriptedBackend

CLAUDE, GPT, OSS = "d/databricks-claude-sonnet-4-5", "d/databricks-gpt-5-1", "d/databricks-gpt-oss-120b"
FUNCTION = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}
USER = {"role": "user", "content": "hi"}


def serving(serve: Serve, scripted: ScriptedBackend, **more: Any) -> Served:
    account = {"name": "d", "kind": "databricks", "base_url": scripted.origin, **more}
    return serve(fresh=True, providers=[account])


def post(served: Served, body: Any, route: str = "/v1/responses") -> httpx.Response:
    with served.client() as client:
        return client.post(route, json=body)


def refusal(message: str, code: str = "BAD_REQUEST", status: int = 400) -> Reply:
    return json_reply({"error_code": code, "message": message}, status)


def refused_on(path: str, reply: Reply) -> Any:
    def answer(request: Request) -> Reply | None:
        return reply if request.path.endswith(path) else None

    return answer


def paths(scripted: ScriptedBackend) -> list[str]:
    return [request.path for request in scripted.requests]


FIRST = [
    (CLAUDE, "/v1/responses", "/serving-endpoints/open-responses"),
    (CLAUDE, "/v1/chat/completions", "/serving-endpoints/chat/completions"),
    (OSS, "/v1/responses", "/serving-endpoints/open-responses"),
    (GPT, "/v1/responses", "/serving-endpoints/responses"),
    ("d/databricks-gpt-5-5", "/v1/chat/completions", "/serving-endpoints/responses"),
    ("d/system.ai.claude-sonnet-4-5", "/v1/chat/completions", "/ai-gateway/mlflow/v1/chat/completions"),
    ("d/system.ai.claude-sonnet-4-5", "/v1/responses", "/ai-gateway/mlflow/v1/responses"),
    ("d/system.ai.gpt-5-5", "/v1/chat/completions", "/ai-gateway/openai/v1/responses"),
    ("d/system.ai.gpt-5-3-codex", "/v1/responses", "/ai-gateway/codex/v1/responses"),
]


@pytest.mark.parametrize(("model", "route", "path"), FIRST)
def test_each_model_is_asked_where_it_is_served(
    serve: Serve, scripted: ScriptedBackend, model: str, route: str, path: str
) -> None:
    body = {"model": model, "messages": [USER]} if "chat" in route else {"model": model, "input": "hi"}
    assert post(serving(serve, scripted), body, route).status_code == 200
    assert paths(scripted) == [path]


REFUSALS = [
    refusal("No API found", "ENDPOINT_NOT_FOUND", 404),
    refusal("Responses API passthrough is not supported for model x"),
    refusal('Bad request: json: unknown field "inputs"'),
    refusal("Oops", "INTERNAL_ERROR", 500),
    refusal("x", "RESOURCE_DOES_NOT_EXIST", 400),
    json_reply({"message": "this route is Not Supported"}, 501),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("reply", REFUSALS)
def test_a_refused_surface_is_left_and_remembered(
    serve: Serve, scripted: ScriptedBackend, reply: Reply, stream: bool
) -> None:
    scripted.play(refused_on("/open-responses", reply))
    served = serving(serve, scripted)
    for _ in range(2):
        assert post(served, {"model": OSS, "input": "hi", "stream": stream}).status_code == 200
    tried = [path.rpartition("/serving-endpoints/")[2] for path in paths(scripted)]
    assert tried == ["open-responses", "chat/completions", "chat/completions"]


def test_when_all_refuse_the_first_words_are_told(serve: Serve, scripted: ScriptedBackend) -> None:
    scripted.play(
        refused_on("/open-responses", refusal("first: no such endpoint", "RESOURCE_DOES_NOT_EXIST", 404)),
        refused_on("/completions", refusal("second", "RESOURCE_DOES_NOT_EXIST", 404)),
    )
    reply = post(serving(serve, scripted), {"model": OSS, "input": "hi"})
    error = reply.json()["error"]
    assert (reply.status_code, error["code"]) == (404, "model_not_found")
    assert "first: no such endpoint" in error["message"]


# --- sanitizers ------------------------------------------------------------------------

ANSWER = {
    "type": "message",
    "role": "assistant",
    "content": [
        {"type": "output_text", "text": "a", "annotations": [], "logprobs": []},
        {"type": "refusal", "refusal": "no"},
    ],
}
CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c", "output": "x"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"}


def sent(serve: Serve, scripted: ScriptedBackend, body: Any, route: str = "/v1/responses") -> Any:
    reply = post(serving(serve, scripted), body, route)
    assert reply.status_code == 200, reply.text
    return scripted.bodies()[-1]


def test_old_answers_go_out_as_input_and_thoughts_stay_here(serve: Serve, scripted: ScriptedBackend) -> None:
    body = sent(serve, scripted, {"model": CLAUDE, "input": [USER, THOUGHT, ANSWER, USER]})
    assert [item["role"] for item in body["input"]] == ["user", "assistant", "user"]
    assert body["input"][1]["content"] == [
        {"type": "input_text", "text": "a"},
        {"type": "input_text", "text": "no"},
    ]


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ([USER, ANSWER], ["user"]),
        ([USER, ANSWER, THOUGHT], ["user"]),
        ([ANSWER], ["assistant"]),
        ([USER, CALL, RESULT], ["user", "function_call", "function_call_output"]),
    ],
)
def test_no_answer_is_last(serve: Serve, scripted: ScriptedBackend, given: Any, left: list[str]) -> None:
    body = sent(serve, scripted, {"model": CLAUDE, "input": given})
    assert [item.get("role") or item["type"] for item in body["input"]] == left


def test_only_functions_reach_the_cross_provider_surface(serve: Serve, scripted: ScriptedBackend) -> None:
    hosted = {"tools": [{"type": "web_search"}], "tool_choice": "auto", "parallel_tool_calls": False}
    body = sent(serve, scripted, {"model": CLAUDE, "input": "hi", **hosted})
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & body.keys()
    both = {"tools": [{"type": "web_search"}, FUNCTION]}
    assert [t["type"] for t in sent(serve, scripted, {"model": CLAUDE, "input": "hi", **both})["tools"]] == [
        "function"
    ]
    assert len(sent(serve, scripted, {"model": GPT, "input": "hi", **both})["tools"]) == 2


def test_a_text_after_results_moves_before_the_calls(serve: Serve, scripted: ScriptedBackend) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    history = [
        USER,
        {"role": "assistant", "content": "a", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "x"},
        {"role": "assistant", "content": "b"},
    ]
    body = sent(serve, scripted, {"model": CLAUDE, "messages": history}, "/v1/chat/completions")
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "tool"]
    assert body["messages"][1]["content"] == "a\n\nb"


def test_refused_keys_are_left_out_and_told(serve: Serve, scripted: ScriptedBackend) -> None:
    keys = {
        "parallel_tool_calls": False,
        "store": True,
        "metadata": {"a": "b"},
        "service_tier": "flex",
        "prompt_cache_key": "k",
        "safety_identifier": "s",
        "client_metadata": {"a": "b"},
    }
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    body = {"model": OSS, "messages": [USER], "tools": [tool], **keys}
    reply = post(serving(serve, scripted), body, "/v1/chat/completions")
    assert not keys.keys() & scripted.bodies()[-1].keys()
    assert {f"/{key}" for key in keys} == set(reply.headers["x-dragoman-dropped"].split(","))


def test_long_ids_fit_and_stay_together(serve: Serve, scripted: ScriptedBackend) -> None:
    long = "c" * 90
    items = [USER, {**CALL, "id": "fc_" + "x" * 90, "call_id": long}, {**RESULT, "call_id": long}]
    _, call, result = sent(serve, scripted, {"model": GPT, "input": items})["input"]
    assert call["call_id"] == result["call_id"]
    assert max(len(call["id"]), len(call["call_id"])) <= 64


# --- errors ----------------------------------------------------------------------------

ERRORS = [
    (400, "REQUEST_LIMIT_EXCEEDED: Exceeded workspace input tokens per minute rate limit for x.", 429, "60"),
    (429, "REQUEST_LIMIT_EXCEEDED: Exceeded QPS rate limit", 429, "60"),
    (403, "Invalid Token", 403, None),
]


@pytest.mark.parametrize("route", ["/v1/responses", "/v1/chat/completions"])
@pytest.mark.parametrize(("status", "words", "told", "after"), ERRORS)
def test_errors_are_told_in_openais_shape(
    serve: Serve, scripted: ScriptedBackend, status: int, words: str, told: int, after: str | None, route: str
) -> None:
    nested = orjson.dumps({"error_code": "X", "message": words}).decode()
    scripted.play(json_reply({"error_code": words.partition(":")[0], "message": nested}, status))
    body = {"model": CLAUDE, "messages": [USER]} if "chat" in route else {"model": CLAUDE, "input": "hi"}
    reply = post(serving(serve, scripted), body, route)
    assert (reply.status_code, reply.headers.get("retry-after")) == (told, after)
    error = reply.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert words.rpartition(": ")[2] in error["message"]


def test_words_of_the_size_limit_are_a_413(serve: Serve, scripted: ScriptedBackend) -> None:
    words = "Server received a request which exceeds maximum allowed content length. RequestSize(bytes): 4"
    scripted.play(refusal(words))
    body = {"model": CLAUDE, "messages": [USER]}
    assert post(serving(serve, scripted), body, "/v1/chat/completions").status_code == 413


# --- agents ----------------------------------------------------------------------------


@pytest.mark.parametrize("route", ["/v1/responses", "/v1/chat/completions"])
def test_an_agents_bare_stream_gets_its_frame(serve: Serve, scripted: ScriptedBackend, route: str) -> None:
    text = {"type": "output_text", "text": "Hello", "annotations": []}
    item = {"id": "m1", "type": "message", "role": "assistant", "status": "completed", "content": [text]}
    events = [
        {"type": "response.output_text.delta", "item_id": "m1", "delta": "Hel"},
        {"type": "response.output_text.delta", "item_id": "m1", "delta": "lo"},
        {"type": "response.output_item.done", "item": item},
    ]
    scripted.play(sse_reply([orjson.dumps(each).decode() for each in events]))
    wire = {"wire": "responses"}
    ask = {"messages": [USER]} if "chat" in route else {"input": "hi"}
    reply = post(serving(serve, scripted, **wire), {"model": "d/my-agent", "stream": True, **ask}, route)
    lines = [line[6:] for line in reply.text.splitlines() if line.startswith("data: ")]
    told = [orjson.loads(line) for line in lines if line != "[DONE]"]
    if "chat" in route:
        texts = [c["delta"].get("content") or "" for each in told for c in each["choices"]]
        assert "".join(texts) == "Hello"
        assert told[-1]["choices"][0]["finish_reason"] == "stop"
    else:
        kinds = [each["type"].removeprefix("response.") for each in told]
        assert (kinds[0], kinds[-1]) == ("created", "completed")
        assert [each["sequence_number"] for each in told] == list(range(len(told)))
        assert told[-1]["response"]["output"][0]["content"][0]["text"] == "Hello"
