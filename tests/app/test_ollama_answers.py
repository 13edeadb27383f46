"""What an Ollama answers, as a client of either shape is told it; its models and embeddings."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from tests.app.conftest import Serve
from tests.app.ollama_served import FLAT, TOOL, Json, Start, chat, chunks, dropped, models, responses, started
from tests.backends.loopback import Reply
from tests.backends.ollama_double import OllamaDouble, Said, end, json_reply, line, lines, ndjson


@pytest.fixture
def double() -> Iterator[OllamaDouble]:
    with OllamaDouble(models()) as server:
        yield server


@pytest.fixture
def start(serve: Serve) -> Start:
    return partial(started, serve)


CALLS = [("f", {"p": "a"}), ("f", {"p": "é"})]


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("ids", [False, True])
@pytest.mark.parametrize("stream", [False, True])
def test_calls_come_with_ids_and_places(
    start: Start, double: OllamaDouble, late: bool, ids: bool, stream: bool
) -> None:
    double.late, double.ids, double.answer = late, ids, lambda _: Said("so", CALLS, "hm")
    answer = chat(start(double), tools=[TOOL], stream=stream, stream_options={"include_usage": True})
    if stream:
        parts = chunks(answer)
        assert len({part["id"] for part in parts}) == 1
        told = [
            call
            for part in parts
            if part["choices"]
            for call in part["choices"][0]["delta"].get("tool_calls", ())
        ]
        calls = [
            {
                "id": next(c["id"] for c in told if c["index"] == at and c.get("id")),
                "arguments": "".join(c["function"].get("arguments", "") for c in told if c["index"] == at),
            }
            for at in (0, 1)
        ]
        finish, usage = parts[-2]["choices"][0]["finish_reason"], parts[-1]["usage"]
    else:
        message = answer.json()["choices"][0]["message"]
        assert (message["content"], message["reasoning_content"]) == ("so", "hm")
        calls = [
            {"id": call["id"], "arguments": call["function"]["arguments"]} for call in message["tool_calls"]
        ]
        finish, usage = answer.json()["choices"][0]["finish_reason"], answer.json()["usage"]
    assert [call["arguments"] for call in calls] == ['{"p":"a"}', '{"p":"é"}']
    assert len({call["id"] for call in calls}) == 2
    assert (calls[0]["id"] == "call_0abcdefg") == ids
    assert finish == "tool_calls"
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (21, 7, 28)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("shape", ["chat", "responses"])
def test_one_call_where_one_is_wanted(start: Start, double: OllamaDouble, shape: str, stream: bool) -> None:
    double.answer = lambda _: Said("so", [*CALLS, ("g", {})])
    served = start(double)
    if shape == "chat":
        answer = chat(served, tools=[TOOL], parallel_tool_calls=False, stream=stream)
    else:
        answer = responses(served, tools=[FLAT], parallel_tool_calls=False, stream=stream)
    assert answer.status_code == 200
    assert "parallel_tool_calls" not in double.chats[0]
    assert "é" not in answer.text
    assert "/parallel_tool_calls" not in dropped(answer)
    if not stream:
        body = answer.json()
        calls = (
            body["choices"][0]["message"]["tool_calls"]
            if shape == "chat"
            else [item for item in body["output"] if item["type"] == "function_call"]
        )
        assert len(calls) == 1


@pytest.mark.parametrize("size", [0, 1, 11])
def test_a_responses_stream(start: Start, double: OllamaDouble, size: int) -> None:
    double.answer = lambda _: ndjson(lines(Said("hello", thought="hm", reason="length")), size)
    answer = responses(start(double), stream=True)
    events = [json.loads(row[6:]) for row in answer.text.splitlines() if row.startswith("data: {")]
    assert events[-1]["type"] == "response.incomplete"
    response = events[-1]["response"]
    assert [item["type"] for item in response["output"]] == ["reasoning", "message"]
    assert response["usage"]["total_tokens"] == 28


BROKEN: list[tuple[str, list[Json], str]] = [
    ("error before anything", [{"error": "llama runner process has terminated"}], "llama runner"),
    ("no end", [line({"content": "hel"})], "ended its stream"),
    ("only loaded", [end(reason="load")], "did not answer"),
    ("nothing", [], "without a reply"),
]


@pytest.mark.parametrize(("name", "sent", "words"), BROKEN, ids=[case[0] for case in BROKEN])
def test_a_reply_that_is_none_is_a_502(
    start: Start, double: OllamaDouble, name: str, sent: list[Json], words: str
) -> None:
    double.answer = lambda _: ndjson(sent)
    answer = chat(start(double))
    assert answer.status_code == 502
    assert words in answer.json()["error"]["message"]


def test_an_error_in_the_middle_of_a_stream(start: Start, double: OllamaDouble) -> None:
    double.answer = lambda _: ndjson([line({"content": "hel"}), {"error": "out of memory"}])
    served = start(double)
    text = chat(served, stream=True).text
    assert "hel" in text
    assert "out of memory" in text.rsplit("data: ", 2)[1]
    rows = responses(served, stream=True).text.splitlines()
    last = [row[6:] for row in rows if row.startswith("data: {")][-1]
    assert json.loads(last)["type"] == "response.failed"


REFUSALS: list[tuple[Reply, int, str | None]] = [
    (json_reply({"error": "unauthorized", "signin_url": "https://x"}, 401), 502, "upstream_auth"),
    (json_reply({"error": "json: cannot unmarshal"}, 400), 400, None),
    (
        json_reply({"error": "the input length exceeds the context length"}, 400),
        400,
        "context_length_exceeded",
    ),
]


@pytest.mark.parametrize(("reply", "status", "code"), REFUSALS)
def test_an_error_keeps_its_meaning(
    start: Start, double: OllamaDouble, reply: Reply, status: int, code: str | None
) -> None:
    double.answer = lambda _: reply
    answer = chat(start(double))
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


def test_an_unknown_model(start: Start, double: OllamaDouble) -> None:
    answer = chat(start(double), model="p/nobody")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "model_not_found")


def test_a_full_queue_is_told_with_a_delay(serve: Serve, double: OllamaDouble) -> None:
    busy = "server busy, please try again.  maximum pending requests exceeded"
    double.answer = lambda _: json_reply({"error": busy}, 503)
    provider = {"name": "p", "kind": "ollama", "base_url": double.origin}
    served = serve(fresh=True, providers=[provider], server={"retry_budget_s": 0.1})
    answer = chat(served)
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"


def test_a_server_that_is_not_there(start: Start) -> None:
    with OllamaDouble() as gone:
        pass
    answer = chat(start(gone, wait=False, models=["qwen3:8b"]))
    assert answer.status_code in (502, 503)


def test_the_cloud_takes_a_key(start: Start, double: OllamaDouble) -> None:
    assert chat(start(double, api_key="secret-key-1")).status_code == 200
    assert {each.headers.get("authorization") for each in double.server.requests} == {"Bearer secret-key-1"}


def test_a_stream_for_one_who_asked_for_none(start: Start, double: OllamaDouble) -> None:
    double.answer = lambda _: ndjson(lines(Said("folded")))
    assert chat(start(double)).json()["choices"][0]["message"]["content"] == "folded"


def test_a_body_for_one_who_asked_for_a_stream(start: Start, double: OllamaDouble) -> None:
    double.answer = lambda _: json_reply(end({"content": "played"}))
    text = "".join(
        part["choices"][0]["delta"].get("content") or "" for part in chunks(chat(start(double), stream=True))
    )
    assert text == "played"


def test_the_time_it_took_is_counted_and_logged(start: Start, double: OllamaDouble) -> None:
    served = start(double)
    chat(served)
    with served.client() as client:
        text = client.get("/metrics").text
    for phase, seconds in (("load", "0.1"), ("prompt", "0.2"), ("eval", "0.4")):
        assert f'dragoman_backend_seconds_total{{phase="{phase}",provider="p"}} {seconds}' in text
    logged = served.log()[0]
    assert (logged["load_ms"], logged["prompt_ms"], logged["eval_ms"]) == (100.0, 200.0, 400.0)


# --- models and embeddings -------------------------------------------------------------


@pytest.mark.parametrize("old", [False, True])
def test_models_are_listed_with_what_they_can_do(start: Start, old: bool) -> None:
    with OllamaDouble(models(), old=old) as server:
        server.models[0].loaded = True
        served = start(server)
        with served.client() as client:
            talking, embedding = (
                {each["id"] for each in client.get(f"/models{query}").json()["data"]}
                for query in ("", "?class=embedding")
            )
        assert embedding == {"p/embed:latest"}
        assert {"p/qwen3:8b", "p/gpt-oss:20b"} <= talking
        assert server.asked("/api/show") == (5 if old else 1)  # how long the vectors are
        facts = {info.id: info.facts for info in served.gateway.catalog.listed("p")}
    assert facts["qwen3:8b"]["loaded"] is True
    assert facts["plain:latest"]["loaded"] is False
    assert facts["qwen3:8b"]["context_window"] == 32768
    assert facts["plain:latest"]["context_window"] == 8192
    assert facts["qwen3:8b"]["server_version"] == "0.12.6"
    assert facts["qwen3:8b"]["capabilities"] == ["completion", "tools", "thinking", "vision"]


@pytest.mark.parametrize("given", ["one", ["one", "three"]])
def test_embeddings_in_openais_shape(start: Start, double: OllamaDouble, given: Any) -> None:
    served = start(double)
    asked = {"model": "p/embed", "input": given}
    with served.client() as client:
        plain = client.post("/v1/embeddings", json=asked).json()
        packed = client.post("/v1/embeddings", json={**asked, "encoding_format": "base64", "dimensions": 2})
    texts = given if isinstance(given, list) else [given]
    vectors = [[float(len(text) + at) for at in range(4)] for text in texts]
    assert [entry["embedding"] for entry in plain["data"]] == vectors
    assert [entry["index"] for entry in plain["data"]] == list(range(len(texts)))
    assert plain["usage"] == {"prompt_tokens": 3 * len(texts), "total_tokens": 3 * len(texts)}
    raw = [base64.b64decode(entry["embedding"]) for entry in packed.json()["data"]]
    assert [list(struct.unpack("<2f", each)) for each in raw] == [vector[:2] for vector in vectors]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"input": [1, 2]}, "input"),
        ({"input": []}, "input"),
        ({"input": "x", "encoding_format": "int8"}, "encoding_format"),
        ({"input": "x" * 3000}, None),
        ({"input": "x", "model": "p/qwen3:8b"}, None),
    ],
)
def test_embeddings_that_cannot_be_made(
    start: Start, double: OllamaDouble, body: Json, param: str | None
) -> None:
    with start(double).client() as client:
        answer = client.post("/v1/embeddings", json={"model": "p/embed", **body})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == param
