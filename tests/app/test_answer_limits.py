"""Limits on the answer that are out of the ordinary, over a real server, in both lanes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.app.conftest import Serve, provider
from tests.app.test_routes import ASK
from tests.backends.scripted import ScriptedBackend


@pytest.mark.parametrize(
    ("profile", "path", "said", "sent", "told"),
    [
        ("openai", "/responses", {"max_output_tokens": 1}, {"max_output_tokens": 16}, "/max_output_tokens"),
        ("openai", "/responses", {"max_output_tokens": 16}, {"max_output_tokens": 16}, None),
        ("base", "/chat/completions", {"max_tokens": 15}, {"max_output_tokens": 16}, "/max_tokens"),
        ("vllm", "/responses", {"max_output_tokens": 1}, {"max_output_tokens": 1}, None),
        ("vllm", "/chat/completions", {"max_tokens": 1}, {"max_output_tokens": 1}, None),
        ("openai", "/chat/completions", {"max_tokens": -1}, {}, None),
    ],
)
def test_towards_responses(
    serve: Serve, scripted: ScriptedBackend, profile: str, path: str, said: Any, sent: Any, told: str | None
) -> None:
    assert asked(serve, scripted, profile, "responses", path, said) == (sent, told)


@pytest.mark.parametrize(
    ("path", "said", "sent"),
    [
        ("/chat/completions", {"max_tokens": -1}, {"max_tokens": -1}),
        ("/chat/completions", {"max_tokens": 1}, {"max_tokens": 1}),
        ("/responses", {"max_output_tokens": 1}, {"max_tokens": 1}),
    ],
)
def test_towards_chat(serve: Serve, scripted: ScriptedBackend, path: str, said: Any, sent: Any) -> None:
    assert asked(serve, scripted, "llamacpp", "chat", path, said) == (sent, None)


def asked(
    serve: Serve, scripted: ScriptedBackend, profile: str, wire: str, path: str, said: Any
) -> tuple[Any, str | None]:
    """The limit that the backend got, and the header that tells of a change."""
    served = serve(providers=[provider(scripted, wire=wire, profile=profile)])
    with served.client() as client:
        reply = client.post(path, json={**ASK[path], **said})
    assert reply.status_code == 200, reply.text
    body = scripted.bodies()[-1]
    limits = {key: value for key, value in body.items() if key.endswith("_tokens")}
    return limits, reply.headers.get("x-dragoman-dropped")
