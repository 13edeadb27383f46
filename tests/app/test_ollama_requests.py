"""What an Ollama is asked, over HTTP, whatever shape the client speaks."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import httpx
import pytest

from providers.images import Images
from tests.app.conftest import Serve
from tests.app.ollama_served import FLAT, PIXEL, TOOL, Json, Start, chat, dropped, models, responses, started
from tests.backends.loopback import Loopback, Reply
from tests.backends.ollama_double import OllamaDouble, Said, json_reply


@pytest.fixture
def double() -> Iterator[OllamaDouble]:
    with OllamaDouble(models()) as server:
        yield server


@pytest.fixture
def start(serve: Serve) -> Start:
    return partial(started, serve)


def test_sampling_goes_into_the_options(start: Start, double: OllamaDouble) -> None:
    served = start(double, overrides={"keep_alive": "10m"})
    knobs = {"temperature": 0.5, "top_p": 0.9, "seed": 7, "presence_penalty": 0.1, "frequency_penalty": 0.2}
    own = {"top_k": 5, "min_p": 0.1, "repeat_penalty": 1.1, "think": False, "options": {"num_keep": 3}}
    answer = chat(served, max_completion_tokens=50, stop="END", user="u", logit_bias={"1": 2}, **knobs, **own)
    assert answer.status_code == 200, answer.text
    assert dropped(answer) == ["/logit_bias", "/user"]
    (body,) = double.chats
    assert body == {
        "model": "qwen3:8b",
        "messages": [{"role": "user", "content": "hi"}],
        "think": False,
        "truncate": False,
        "shift": False,
        "keep_alive": "10m",
        "stream": False,
        "options": {
            "num_ctx": 32768,
            "num_predict": 50,
            "stop": ["END"],
            "num_keep": 3,
            **knobs,
            "top_k": 5,
            "min_p": 0.1,
            "repeat_penalty": 1.1,
        },
    }
    request = next(each for each in double.server.requests if each.path == "/api/chat")
    assert "application/x-ndjson" in request.headers["accept"]
    assert "authorization" not in request.headers


@pytest.mark.parametrize(
    ("model", "overrides", "own", "wanted"),
    [
        ("qwen3:8b", {}, {}, 32768),
        ("plain", {}, {}, 8192),
        ("gpt-oss:20b", {}, {}, 32768),
        ("unlisted", {}, {}, 32768),
        ("plain", {"num_ctx": 16384}, {}, 16384),
        ("plain", {"num_ctx": 16384}, {"num_ctx": 2048}, 2048),
        ("plain", {"num_ctx": 16384}, {"options": {"num_ctx": 1024}}, 1024),
    ],
)
@pytest.mark.parametrize("ask", [chat, responses])
def test_a_context_is_always_asked_for(
    start: Start,
    double: OllamaDouble,
    ask: Callable[..., httpx.Response],
    model: str,
    overrides: Json,
    own: Json,
    wanted: int,
) -> None:
    ask(start(double, overrides=overrides), model=f"p/{model}", **own)
    assert [body["options"]["num_ctx"] for body in double.chats or [{"options": {"num_ctx": wanted}}]] == [
        wanted
    ]
    assert bool(double.chats) == bool(double.asked("/api/chat"))


EFFORTS = [
    ("qwen3:8b", None, None, False),
    ("qwen3:8b", "none", False, False),
    ("qwen3:8b", "minimal", "low", True),
    ("qwen3:8b", "low", "low", False),
    ("qwen3:8b", "high", "high", False),
    ("qwen3:8b", "xhigh", "max", True),
    ("qwen3:8b", "max", "max", False),
    ("gpt-oss:20b", "max", "high", True),
    ("plain", "high", None, True),
    ("plain", "none", None, False),
    ("gpt-oss:20b", "medium", "medium", False),
    ("gpt-oss:20b", "none", None, True),
]


@pytest.mark.parametrize(("model", "effort", "think", "lost"), EFFORTS)
def test_the_effort_is_a_level_of_think(
    start: Start, double: OllamaDouble, model: str, effort: str | None, think: Any, lost: bool
) -> None:
    served = start(double)
    one = chat(served, model=f"p/{model}", **({"reasoning_effort": effort} if effort else {}))
    two = responses(served, model=f"p/{model}", **({"reasoning": {"effort": effort}} if effort else {}))
    assert (one.status_code, two.status_code) == (200, 200)
    assert [body.get("think") for body in double.chats] == [think, think]
    assert (dropped(one), dropped(two)) == (
        (["/reasoning_effort"], ["/reasoning/effort"]) if lost else ([""], [""])
    )
    assert double.refused == []


def test_a_level_that_is_refused_is_left_out_once_and_remembered(start: Start, double: OllamaDouble) -> None:
    """An older server: its model thinks, but only by a switch."""
    served = start(double)
    for _ in range(2):
        answer = chat(served, model="p/llama3:8b", reasoning_effort="low")
        assert answer.status_code == 200
        assert dropped(answer) == ["/reasoning_effort"]
    assert [body.get("think") for body in double.chats] == ["low", None, None]
    assert double.refused == ['think value "low" is not supported for this model']


def test_a_server_that_knows_no_max_is_asked_for_it_once(start: Start, double: OllamaDouble) -> None:
    """The lesser levels it still takes."""
    fault = 'invalid think value: "max" (must be "high", "medium", "low", true, or false)'

    def answer(body: dict[str, Any]) -> Any:
        return json_reply({"error": fault}, 400) if body.get("think") == "max" else Said("ok")

    double.answer = answer
    served = start(double)
    for effort in ("max", "xhigh", "high"):
        assert chat(served, reasoning_effort=effort).status_code == 200
    assert [body.get("think") for body in double.chats] == ["max", None, None, "high"]


@pytest.mark.parametrize("shape", ["chat", "responses"])
@pytest.mark.parametrize("stream", [False, True])
def test_what_a_model_cannot_do_is_asked_for_once(
    start: Start, double: OllamaDouble, shape: str, stream: bool
) -> None:
    """Of a server that tells no capabilities the first refusal is remembered."""
    double.models[1].entry = {"capabilities": []}
    served = start(double, models=["plain"])
    for _ in range(2):
        if shape == "chat":
            answer = chat(served, model="p/plain", tools=[TOOL], reasoning_effort="high", stream=stream)
            wanted = {"/tools", "/reasoning_effort"}
        else:
            answer = responses(
                served, model="p/plain", tools=[FLAT], reasoning={"effort": "high"}, stream=stream
            )
            wanted = {"/tools", "/reasoning/effort"}
        assert answer.status_code == 200, answer.text
        assert "llama" in answer.text
        assert wanted <= set(dropped(answer))
    assert len(double.refused) == 2
    assert ["tools" in body for body in double.chats][-1:] == [False]
    assert len(double.chats) == 4


def test_who_wants_no_loss_hears_the_refusal(start: Start, double: OllamaDouble) -> None:
    served = start(double)
    answer = chat(
        served, {"x-dragoman-strict": "true"}, model="p/plain", tools=[{**TOOL, "function": {"name": "f"}}]
    )
    assert answer.status_code == 400
    assert "does not support tools" in answer.json()["error"]["message"]


def test_a_model_that_lists_no_tools_is_not_asked_with_any(start: Start, double: OllamaDouble) -> None:
    answer = chat(start(double), model="p/plain", tools=[TOOL])
    assert answer.status_code == 200
    assert "/tools" in dropped(answer)
    assert double.refused == []


def test_a_model_pulled_anew_is_asked_anew(start: Start, double: OllamaDouble) -> None:
    """What is learned belongs to what the model is made of, not to its name."""
    served, old = start(double), double.models[3]
    chat(served, model="p/llama3:8b", reasoning_effort="low")
    double.models[3] = replace(old, digest="sha256:eeee", family="qwen3")
    with served.client() as client:
        assert client.get("/v1/models?refresh=1").status_code == 200
    answer = chat(served, model="p/llama3:8b", reasoning_effort="low")
    assert [body.get("think") for body in double.chats] == ["low", None, "low"]
    assert (answer.status_code, dropped(answer)) == (200, [""])


HISTORY = [
    {"role": "developer", "content": "be brief"},
    {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "text", "text": " here"}]},
    {
        "role": "assistant",
        "content": None,
        "reasoning_content": "hm",
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}},
            {"id": "call_2", "type": "function", "function": {"name": "f", "arguments": "{torn"}},
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "r1"}]},
    {"role": "tool", "tool_call_id": "call_2", "content": "r2"},
]


def test_a_history_in_ollamas_words(start: Start, double: OllamaDouble) -> None:
    answer = chat(start(double), messages=HISTORY, tools=[TOOL])
    assert answer.status_code == 200
    assert set(dropped(answer)) == {"/messages/2/tool_calls/1", "/tools/0/function/parameters"}
    (body,) = double.chats
    assert body["messages"] == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "look here"},
        {
            "role": "assistant",
            "content": "",
            "thinking": "hm",
            "tool_calls": [
                {"id": "call_1", "function": {"index": 0, "name": "f", "arguments": {"a": 1}}},
                {"id": "call_2", "function": {"index": 1, "name": "f", "arguments": {}}},
            ],
        },
        {"role": "tool", "content": "r1", "tool_call_id": "call_1", "tool_name": "f"},
        {"role": "tool", "content": "r2", "tool_call_id": "call_2", "tool_name": "f"},
    ]
    assert body["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "f",
                "parameters": {"type": "object", "properties": {"a": {"enum": [1]}}},
            },
        }
    ]


def test_a_picture_is_bare_base64(start: Start, double: OllamaDouble) -> None:
    served, url = start(double), f"data:image/png;base64,{PIXEL}"
    parts = [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": url}}]
    assert chat(served, messages=[{"role": "user", "content": parts}]).status_code == 200
    item = {"role": "user", "content": [{"type": "input_image", "image_url": url}]}
    assert responses(served, input=[item]).status_code == 200
    assert [body["messages"][0].get("images") for body in double.chats] == [[PIXEL], [PIXEL]]


@pytest.mark.parametrize(
    ("model", "part", "words"),
    [
        ("qwen3:8b", {"type": "image_url", "image_url": {"url": "data:image/svg+xml,<svg/>"}}, "base64"),
        ("qwen3:8b", {"type": "image_url", "image_url": {"url": "http://127.0.0.1:1/a.png"}}, "could not be"),
        ("plain", {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}, "no image"),
        ("qwen3:8b", {"type": "input_audio", "input_audio": {"data": "aa", "format": "wav"}}, "no audio"),
        ("qwen3:8b", {"type": "file", "file": {"file_data": "aa", "filename": "a.pdf"}}, "no file"),
    ],
)
def test_other_media_are_refused(
    start: Start, double: OllamaDouble, model: str, part: Json, words: str
) -> None:
    answer = chat(start(double), model=f"p/{model}", messages=[{"role": "user", "content": [part]}])
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]
    assert answer.json()["error"]["param"].startswith("messages")
    assert double.chats == []


def test_sound_goes_to_a_model_that_hears(start: Start, double: OllamaDouble) -> None:
    double.models[0].capabilities += ("audio",)
    part = {"type": "input_audio", "input_audio": {"data": PIXEL, "format": "wav"}}
    answer = chat(start(double), messages=[{"role": "user", "content": [part]}])
    assert answer.status_code == 200
    assert double.chats[0]["messages"][0]["images"] == [PIXEL]


@pytest.mark.parametrize("shape", ["chat", "responses"])
def test_a_remote_picture_is_fetched(start: Start, double: OllamaDouble, shape: str) -> None:
    png = b"\x89PNG\r\n\x1a\n" + b"p" * 40
    with Loopback(lambda _: Reply(200, {"content-type": "image/png"}, [png])) as pictures:
        served, url = start(double), f"{pictures.origin}/a.png"
        ports = frozenset({int(pictures.origin.rpartition(":")[2])})
        served.gateway.images = Images(allows=lambda _: True, ports=ports)
        if shape == "chat":
            parts: Any = [{"type": "image_url", "image_url": {"url": url}}]
            answer = chat(served, messages=[{"role": "user", "content": parts}])
        else:
            parts = [{"type": "input_image", "image_url": url}]
            answer = responses(served, input=[{"role": "user", "content": parts}])
    assert answer.status_code == 200, answer.text
    assert double.chats[0]["messages"][0]["images"] == [base64.b64encode(png).decode()]
    assert double.chats[0]["model"] == "qwen3:8b"


SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
FORMATS = [
    ({"type": "text"}, None),
    ({"type": "json_object"}, "json"),
    ({"type": "json_schema", "json_schema": {"name": "r", "schema": SCHEMA}}, SCHEMA),
    ({"type": "json_schema", "json_schema": {"name": "r"}}, "json"),
]


@pytest.mark.parametrize(("given", "wanted"), FORMATS)
def test_the_format_is_a_word_or_the_bare_schema(
    start: Start, double: OllamaDouble, given: Json, wanted: Any
) -> None:
    assert chat(start(double), response_format=given).status_code == 200
    assert double.chats[0].get("format") == wanted


OTHER = {"type": "function", "function": {"name": "g", "parameters": {"type": "object", "properties": {}}}}
NAMED = {"type": "function", "function": {"name": "g"}}
CHOICES: list[tuple[Any, list[str] | None, bool]] = [
    ("auto", ["f", "g"], False),
    ("none", None, False),
    ("required", ["f", "g"], True),
    (NAMED, ["g"], True),
]


@pytest.mark.parametrize(("choice", "offered", "told"), CHOICES)
def test_a_choice_is_made_by_what_is_offered(
    start: Start, double: OllamaDouble, choice: Any, offered: list[str] | None, told: bool
) -> None:
    answer = chat(start(double), tools=[TOOL, OTHER], tool_choice=choice)
    assert answer.status_code == 200
    (body,) = double.chats
    names = [tool["function"]["name"] for tool in body["tools"]] if "tools" in body else None
    assert names == offered
    words = body["messages"][0]["content"]
    assert ("must answer by calling" in words) == told
    assert ("/tool_choice" in dropped(answer)) == told
    assert ("`g`" in words) == (choice == NAMED)
