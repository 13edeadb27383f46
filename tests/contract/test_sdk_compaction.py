"""Compacting and counting with the newest OpenAI SDK.

Its type of a message in a compacted conversation is an assistant's: a dump of a user's warns, OpenAI's too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from openai import OpenAI
from openai.types.responses import Response

from tests.backends.gateway import Gateway
from tests.backends.scripted import ScriptedBackend

GREETING = "Hello from the backend."
GIVEN: Any = [{"role": "user", "content": "My name is Alice."}, {"role": "assistant", "content": "Hi Alice."}]


@pytest.fixture
def backend() -> Iterator[ScriptedBackend]:
    with ScriptedBackend() as backend:
        yield backend


@pytest.fixture(params=["chat", "responses"])
def sdk(
    request: pytest.FixtureRequest, backend: ScriptedBackend, start_gateway: Callable[..., Gateway]
) -> Iterator[OpenAI]:
    base = f"{backend.origin}/v1"
    gateway = start_gateway(
        [{"name": "up", "kind": "openai", "base_url": base, "models": ["m"], "wire": request.param}]
    )
    with OpenAI(base_url=f"{gateway.base}/v1", api_key="none", max_retries=0) as client:
        yield client


def test_a_compacted_conversation_goes_on(sdk: OpenAI, backend: ScriptedBackend) -> None:
    compacted = sdk.responses.compact(model="up/m", input=GIVEN)
    assert (compacted.object, compacted.usage.total_tokens) == ("response.compaction", 18)
    kinds = [item.type for item in compacted.output]
    assert kinds == ["message", "compaction"]
    again: Any = [item.model_dump(exclude_none=True, warnings=False) for item in compacted.output]
    answer = sdk.responses.create(model="up/m", input=[*again, {"role": "user", "content": "And?"}])
    assert answer.output_text == GREETING
    told = str(backend.bodies()[-1])
    assert told.index("My name is Alice.") < told.index(GREETING) < told.index("And?")


def test_a_streamed_compaction_accumulates(sdk: OpenAI) -> None:
    with sdk.responses.stream(model="up/m", input=[*GIVEN, {"type": "compaction_trigger"}]) as stream:
        final: Response = stream.get_final_response()  # type: ignore[assignment]
    (item,) = final.output
    assert item.type == "compaction"
    assert item.encrypted_content.startswith("dgc1.")


def test_tokens_are_counted(sdk: OpenAI) -> None:
    counted = sdk.responses.input_tokens.count(model="up/m", input="one two three " * 100)
    assert counted.object == "response.input_tokens"
    assert 300 < counted.input_tokens < 400
