"""The official SDK over a WebSocket: turns with a tool, lanes, warm-up, errors, and what it continues."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai.lib.responses_websocket import ResponsesWebSocketLimits, ResponsesWebSocketSession
from openai.resources.responses.responses import ResponsesConnection

from tests.app.conftest import Serve, provider
from tests.backends.loopback import Request
from tests.backends.replies import ToolUse, chat_stream, response_stream, sse_reply
from tests.backends.scripted import ScriptedBackend

# The SDK opens connections in a way that its library has begun to discourage.
pytestmark = pytest.mark.filterwarnings("ignore:connect\\(\\) must be used:DeprecationWarning")

LIMITS = ResponsesWebSocketLimits(
    max_lanes=4,
    max_events_per_lane=128,
    max_events=512,
    max_bytes_per_lane=1 << 20,
    max_bytes=4 << 20,
    max_response_bytes=None,
)
WEATHER: Any = {"type": "function", "name": "weather", "parameters": {"type": "object"}, "strict": False}
CALL = ToolUse("call_1", "weather", '{"city":"Oslo"}')


@pytest.fixture(params=["chat", "responses"])
def connection(
    request: pytest.FixtureRequest, serve: Serve, scripted: ScriptedBackend
) -> Iterator[ResponsesConnection]:
    served = serve(fresh=True, providers=[provider(scripted, request.param)], store={"kind": "memory"})
    with (
        openai.OpenAI(base_url=f"{served.base}/v1", api_key="k", max_retries=0) as client,
        client.responses.connect() as connection,
    ):
        yield connection


def finished(connection: ResponsesConnection, **fields: Any) -> Any:
    """The response of one turn."""
    connection.response.create(model="m", **fields)
    for event in connection:
        assert event.type != "error", event
        if event.type in ("response.completed", "response.failed"):
            return event.response
    raise AssertionError("the connection ended")


def with_a_call(request: Request) -> Any:
    """A call first, words once it has its result."""
    if "call_1" in request.body.decode() or b"weather" not in request.body:
        return None
    if request.path.endswith("responses"):
        return sse_reply(response_stream("", [CALL]))
    return sse_reply(chat_stream("", calls=[CALL]))


def test_a_tool_over_several_turns(connection: ResponsesConnection, scripted: ScriptedBackend) -> None:
    scripted.play(with_a_call)
    first = finished(connection, input="Oslo?", tools=[WEATHER], store=False)
    (call,) = [item for item in first.output if item.type == "function_call"]
    assert (call.name, call.arguments) == ("weather", '{"city":"Oslo"}')
    given: Any = [{"type": "function_call_output", "call_id": call.call_id, "output": "rain"}]
    more = {"tools": [WEATHER], "store": False}
    second = finished(connection, input=given, previous_response_id=first.id, **more)
    assert second.output_text == "Hello from the backend."
    third = finished(connection, input="thanks", previous_response_id=second.id, **more)
    assert third.previous_response_id == second.id
    body = scripted.bodies()[-1]
    roles = [each.get("role") or each["type"] for each in body.get("messages") or body["input"]]
    called = ["assistant", "tool"] if "messages" in body else ["function_call", "function_call_output"]
    assert roles == ["user", *called, "assistant", "user"]


def test_a_warm_up_is_continued(connection: ResponsesConnection, scripted: ScriptedBackend) -> None:
    warm = finished(connection, input="before", generate=False, store=False)
    assert (warm.status, warm.output, scripted.requests) == ("completed", [], [])
    finished(connection, input="after", previous_response_id=warm.id, store=False)
    body = scripted.bodies()[-1]
    assert len(body.get("messages") or body["input"]) == 2


def test_an_error_says_its_status(connection: ResponsesConnection) -> None:
    connection.response.create(model="m", input="x", previous_response_id="resp_none")
    event: Any = connection.recv()
    assert (event.type, event.status) == ("error", 400)
    assert event.error.code == "previous_response_not_found"
    assert event.error.headers["x-request-id"]
    assert finished(connection, input="x").status == "completed"


def create(words: str, **fields: Any) -> Any:
    return {"type": "response.create", "model": "m", "input": words, "store": False, **fields}


def test_lanes_of_a_session(connection: ResponsesConnection) -> None:
    with ResponsesWebSocketSession(connection, limits=LIMITS) as session:
        lanes = [session.lane(name) for name in ("a", "b")]
        for lane in lanes:
            lane.send(create("hi"))
        first = [lane.get_final_response() for lane in lanes]
        # A lane goes on with what another one said.
        lanes[1].send(create("more", previous_response_id=first[0].id))
        last = lanes[1].get_final_response()
    assert [response.output_text for response in first] == ["Hello from the backend."] * 2
    assert last.previous_response_id == first[0].id
