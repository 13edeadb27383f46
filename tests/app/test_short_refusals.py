"""A refusal quotes what was wrong, but does not give back kilobytes of it."""

from __future__ import annotations

import re

import orjson

from tests.app.conftest import Serve, provider
from tests.backends.scripted import ScriptedBackend

LONG = "x" * 3000
SPACED = "two words " * 300
USER = {"role": "user", "content": "hi"}
BODIES = [
    ("/v1/chat/completions", {"messages": [{"role": LONG, "content": "hi"}]}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": [{"type": LONG}]}]}),
    ("/v1/chat/completions", {"messages": [USER], "tools": [{"type": LONG}]}),
    ("/v1/chat/completions", {"messages": [USER], "tool_choice": LONG}),
    ("/v1/chat/completions", {"messages": [USER], "response_format": {"type": LONG}}),
    ("/v1/chat/completions", {"messages": [USER], "reasoning_effort": LONG}),
    ("/v1/chat/completions", {"messages": [USER], "stream": LONG}),
    ("/v1/responses", {"input": [{"type": LONG}]}),
    ("/v1/responses", {"input": [{"type": SPACED}]}),
    ("/v1/responses", {"input": [{"role": LONG, "content": "hi"}]}),
    ("/v1/responses", {"input": [{"role": "user", "content": [{"type": LONG}]}]}),
    ("/v1/responses", {"input": "hi", "tools": [{"type": LONG}]}),
    ("/v1/responses", {"input": "hi", "tool_choice": {"type": LONG}}),
    ("/v1/responses", {"input": "hi", "tool_choice": {"type": "function", "name": LONG}}),
    ("/v1/responses", {"input": "hi", "text": {"format": {"type": LONG}}}),
    ("/v1/responses", {"input": "hi", "previous_response_id": LONG}),
    ("/v1/responses", {"input": [{"type": "item_reference", "id": LONG}]}),
    ("/v1/responses", {"input": "hi", "reasoning": {"effort": LONG}}),
]


def test_no_refusal_gives_a_long_word_back(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)])
    refused = 0
    with served.client() as client:
        for path, body in BODIES:
            reply = client.post(path, content=orjson.dumps({"model": "p/m", **body}))
            if reply.status_code >= 400:
                refused += 1
                assert reply.json()["error"]["message"], reply.text
                assert not re.search(r"x{101}|(?:two words ){11}", reply.text), (path, reply.text[:300])
    assert refused > len(BODIES) // 2
