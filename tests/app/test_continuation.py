"""Replies that the token limit cuts off, continued, over HTTP."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.app.continued import ROUTES, Part, Whole, in_turn, read
from tests.app.ollama_served import models, started
from tests.app.onnx_served import MODEL
from tests.app.onnx_served import started as started_embedded
from tests.app.test_recovery import post
from tests.backends.loopback import Reply, Request
from tests.backends.ollama_double import OllamaDouble, Said
from tests.backends.replies import CHAT_USAGE, ToolUse, json_reply
from tests.backends.scripted import ScriptedBackend
from translators.continuation import GO_ON

from .conftest import Serve, Served, provider

Json = dict[str, Any]
ON = {"answer": {"continuations": 5}}
CALL = ToolUse("c1", "weather", '{"city": "Paris"}')
TOOL: Json = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}}
IN, OUT = CHAT_USAGE["prompt_tokens"], CHAT_USAGE["completion_tokens"]


@pytest.fixture(params=["chat", "responses"])
def wire(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["chat", "responses"])
def shape(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[False, True], ids=["whole", "stream"])
def stream(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def asked(shape: str, stream: bool, **more: Any) -> Json:
    if shape == "responses":
        return {"model": "p/m", "input": "Tell.", "stream": stream, "store": False, **more}
    options = {"stream_options": {"include_usage": True}} if stream else {}
    return {
        "model": "p/m",
        "messages": [{"role": "user", "content": "Tell."}],
        "stream": stream,
        **options,
        **more,
    }


class Ask:
    """A client of a gateway that continues."""

    def __init__(self, serve: Serve, scripted: ScriptedBackend, wire: str, shape: str, stream: bool) -> None:
        self.scripted, self.wire, self.shape, self.stream = scripted, wire, shape, stream
        self._serve = serve
        self.served: Served

    def __call__(self, *parts: Any, rules: Json = ON, **more: Any) -> Whole:
        self.scripted.play(in_turn(*parts))
        self.served = self._serve(providers=[provider(self.scripted, self.wire, overrides=rules)])
        self.reply = post(self.served, asked(self.shape, self.stream, **more), ROUTES[self.shape])
        return read(self.reply, self.shape, self.stream)

    def said(self, sent: Json) -> list[tuple[str, str]]:
        turns = sent.get("messages", sent.get("input"))
        if isinstance(turns, str):
            return [("user", turns)]
        return [(each["role"], _text(each["content"])) for each in turns]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


@pytest.fixture
def ask(serve: Serve, scripted: ScriptedBackend, wire: str, shape: str, stream: bool) -> Ask:
    return Ask(serve, scripted, wire, shape, stream)


def test_two_cuts_are_one_answer(ask: Ask) -> None:
    got = ask(Part("One, tw"), Part("o, thr"), Part("ee.", "stop"), temperature=0.5)
    assert got == Whole("One, two, three.", "stop", {"in": 3 * IN, "out": 3 * OUT}, [], "", 1)
    bodies = ask.scripted.bodies()
    user = ("user", "Tell.")
    assert [ask.said(sent) for sent in bodies] == [
        [user],
        [user, ("assistant", "One, tw")],
        [user, ("assistant", "One, two, thr")],
    ]
    others = [{k: v for k, v in sent.items() if k not in ("messages", "input")} for sent in bodies]
    assert others[0] == others[1] == others[2]
    if not ask.stream:
        assert ask.reply.headers["x-dragoman-continuations"] == "2"
    (line,) = ask.served.log()
    assert (line["continuations"], line["attempts"]) == (2, 3)
    told = ask.served.log("provider:incomplete_continuation")
    assert [each["continuation_number"] for each in told] == [1, 2]
    assert told[0].items() >= {"provider": "p", "reason": "max_output_tokens", "max_attempts": 5}.items()
    assert told[0]["response_id"] in ("chatcmpl-scripted", "resp_scripted")


def test_always_cut_off(ask: Ask) -> None:
    got = ask(Part("a"))
    assert got == Whole("a" * 6, "max_output_tokens", {"in": 6 * IN, "out": 6 * OUT}, [], "", 1)
    assert len(ask.scripted.requests) == 6


def test_as_often_as_configured(ask: Ask) -> None:
    assert ask(Part("a"), rules={"answer": {"continuations": 1}}).text == "aa"
    assert len(ask.scripted.requests) == 2


def test_off_unless_configured(ask: Ask) -> None:
    got = ask(Part("a"), rules={})
    assert (got.text, got.end, len(ask.scripted.requests)) == ("a", "max_output_tokens", 1)
    assert "x-dragoman-continuations" not in ask.reply.headers


@pytest.mark.parametrize(
    ("part", "end"),
    [
        (Part("All.", "stop"), "stop"),
        (Part("No", "content_filter"), "content_filter"),
        (Part("", "length"), "max_output_tokens"),
        (Part("It is", "length", [CALL]), "max_output_tokens"),
    ],
    ids=["whole", "filtered", "nothing said", "a call"],
)
def test_what_is_not_continued(ask: Ask, part: Part, end: str) -> None:
    tools = [TOOL] if ask.shape == "responses" else [{"type": "function", "function": {"name": "weather"}}]
    got = ask(part, tools=tools)
    assert (got.text, got.end) == (part.text, end)
    assert len(ask.scripted.requests) == 1
    assert "x-dragoman-continuations" not in ask.reply.headers


@pytest.mark.parametrize(
    ("part", "end"),
    [(Part("b", "content_filter"), "content_filter"), (Part("", "length"), "max_output_tokens")],
    ids=["filtered", "nothing more"],
)
def test_where_going_on_ends(ask: Ask, part: Part, end: str) -> None:
    got = ask(Part("a"), part, Part("c", "stop"))
    assert (got.text, got.end, got.items) == ("a" + part.text, end, 1)
    assert len(ask.scripted.requests) == 2


def test_a_call_at_the_end(ask: Ask) -> None:
    tools = [TOOL] if ask.shape == "responses" else [{"type": "function", "function": {"name": "weather"}}]
    got = ask(Part("Let me "), Part("look.", "tool_calls", [CALL]), tools=tools)
    assert (got.text, got.end, got.calls, got.items) == ("Let me look.", "stop", ["weather"], 1)


def test_thoughts_of_a_continuation_are_left_out(
    serve: Serve, scripted: ScriptedBackend, shape: str, stream: bool
) -> None:
    ask = Ask(serve, scripted, "chat", shape, stream)
    got = ask(Part("One", thought="hm"), Part(", two", "stop", thought="hm again"))
    assert (got.text, got.thoughts, got.items) == ("One, two", "hm", 1)


FAILURES: dict[str, Any] = {
    "an error": lambda request: json_reply({"error": {"message": "overloaded"}}, 529),
    "a refusal": lambda request: json_reply({"error": {"message": "no prefill"}}, 400),
    "no reply": lambda request: Reply(200, {"content-type": "text/html"}, [b"<html></html>"]),
    "a cut connection": lambda request: Reply(200, {}, [], end="cut"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_one_that_fails_leaves_what_was_said(ask: Ask, failure: str) -> None:
    got = ask(Part("One, "), FAILURES[failure])
    assert (got.text, got.end, got.usage["out"]) == ("One, ", "max_output_tokens", OUT)
    (line,) = ask.served.log("provider:continuation_failed")
    assert line["continuation_number"] == 1
    assert ask.served.log()[0]["error"] is None


def test_one_that_breaks_off_leaves_what_was_said(
    serve: Serve, scripted: ScriptedBackend, wire: str, shape: str
) -> None:
    ask = Ask(serve, scripted, wire, shape, True)
    got = ask(Part("One, "), Part("two", breaks=True))
    assert (got.text, got.end, got.items) == ("One, two", "max_output_tokens", 1)


def test_one_that_breaks_off_in_a_call_fails(serve: Serve, scripted: ScriptedBackend) -> None:
    scripted.play(in_turn(Part("One, "), Part("", "tool_calls", [CALL], breaks=True)))
    served = serve(providers=[provider(scripted, overrides=ON)])
    reply = post(served, asked("responses", True), ROUTES["responses"])
    assert "response.failed" in reply.text
    assert "function_call_arguments.done" not in reply.text


def test_the_first_that_fails_is_a_failure(ask: Ask) -> None:
    with pytest.raises(AssertionError, match="error"):
        ask(FAILURES["a refusal"])
    assert ask.reply.status_code == 400


def test_a_backend_that_takes_no_assistant_at_the_end(ask: Ask) -> None:
    rules = {**ON, "messages": {"trailing_assistant": "drop"}}
    assert ask(Part("One, "), Part("two.", "stop"), rules=rules).text == "One, two."
    assert ask.said(ask.scripted.bodies()[-1])[1:] == [("assistant", "One, "), ("user", GO_ON)]


def test_a_body_where_a_stream_was_asked_for(
    serve: Serve, scripted: ScriptedBackend, wire: str, shape: str
) -> None:
    def whole(part: Part) -> Any:
        return lambda request: part(Request("POST", request.path, {}, b"{}"))

    ask = Ask(serve, scripted, wire, shape, True)
    assert ask(whole(Part("One, ")), whole(Part("two.", "stop"))).text == "One, two."


def test_a_stream_where_a_body_was_asked_for(
    serve: Serve, scripted: ScriptedBackend, wire: str, shape: str
) -> None:
    def streamed(part: Part) -> Any:
        return lambda request: part(Request("POST", request.path, {}, b'{"stream": true}'))

    ask = Ask(serve, scripted, wire, shape, False)
    assert ask(streamed(Part("One, ")), streamed(Part("two.", "stop"))).text == "One, two."


def test_a_client_that_leaves_stops_it(serve: Serve, scripted: ScriptedBackend) -> None:
    def slow(request: Request) -> Reply:
        return Reply(200, {"content-type": "text/event-stream"}, [b": wait\n\n", 5.0], end="hang")

    scripted.play(in_turn(Part("One, "), slow))
    served = serve(providers=[provider(scripted, overrides=ON)])
    with (
        served.client() as client,
        client.stream("POST", ROUTES["responses"], json=asked("responses", True)) as reply,
    ):
        parts = reply.iter_bytes()  # one that nobody holds would end the request at once
        next(parts)
        deadline = time.monotonic() + 5
        while len(scripted.requests) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert scripted.requests[1].gone.wait(5)
    assert len(scripted.requests) == 2


def test_a_stored_answer_is_the_whole_one(serve: Serve, scripted: ScriptedBackend, stream: bool) -> None:
    scripted.play(in_turn(Part("One, "), Part("two.", "stop")))
    served = serve(providers=[provider(scripted, overrides=ON)], store={"kind": "memory"})
    reply = post(served, {**asked("responses", stream), "store": True}, ROUTES["responses"])
    assert read(reply, "responses", stream).text == "One, two."
    with served.client() as client:
        scripted.play(in_turn(Part("three.", "stop")))
        id = reply.json()["id"] if not stream else reply.text.split('"id":"')[1].split('"')[0]
        body = {"model": "p/m", "input": "And?", "previous_response_id": id}
        assert client.post(ROUTES["responses"], json=body).status_code == 200
    assert ("assistant", "One, two.") in [
        (m["role"], m["content"]) for m in scripted.bodies()[-1]["messages"]
    ]


def test_an_ollama_server_goes_on(serve: Serve, shape: str, stream: bool) -> None:
    with OllamaDouble(models()) as double:
        said = [Said("One, ", reason="length"), Said("two.")]
        double.answer = lambda _: said.pop(0)
        served = started(serve, double, overrides=ON)
        reply = post(served, {**asked(shape, stream), "model": "p/qwen3:8b"}, ROUTES[shape])
        assert read(reply, shape, stream).text == "One, two."
        assert double.refused == []
        assert double.chats[-1]["messages"][-1] == {"role": "assistant", "content": "One, "}


def test_a_model_on_this_machine_goes_on(serve: Serve, stream: bool) -> None:
    served = started_embedded(serve, answer={"continuations": 2})
    body = {"model": MODEL, "messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 3}
    reply = post(served, {**body, "stream": stream, **WITH_USAGE[stream]}, ROUTES["chat"])
    assert read(reply, "chat", stream).usage["out"] == 9
    (line,) = served.log()
    assert line["continuations"] == 2


WITH_USAGE: dict[bool, Json] = {False: {}, True: {"stream_options": {"include_usage": True}}}
