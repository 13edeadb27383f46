"""Requests that cannot fit the model's context, over HTTP: refused with the numbers, before they are sent."""

from __future__ import annotations

from typing import Any

import pytest

from tests.app.conftest import Serve
from tests.app.test_pipeline import provider
from tests.app.test_recovery import post
from tests.backends.scripted import ScriptedBackend

RULES = {"request": {"context_window": 2000, "chars_per_token": 2.0}}
IMAGE = "data:image/png;base64," + "A" * 40_000
LANES = [
    ("/v1/chat/completions", "chat"),
    ("/v1/chat/completions", "responses"),
    ("/v1/responses", "chat"),
    ("/v1/responses", "responses"),
]


def asked(route: str, text: str, image: str | None = None) -> dict[str, Any]:
    """One user message in the shape of `route`."""
    chat = route.endswith("completions")
    parts: list[dict[str, Any]] = [{"type": "text" if chat else "input_text", "text": text}]
    if image is not None:
        source = {"url": image} if chat else image
        parts.append({"type": "image_url" if chat else "input_image", "image_url": source})
    turns = [{"role": "user", "content": parts}]
    return {"model": "p/m", "messages" if chat else "input": turns}


@pytest.mark.parametrize(("route", "wire"), LANES)
def test_too_much_is_refused_with_the_numbers(
    serve: Serve, scripted: ScriptedBackend, route: str, wire: str
) -> None:
    served = serve(fresh=True, providers=[provider(scripted, wire=wire, overrides=RULES)])
    reply = post(served, asked(route, "word " * 1000), route)
    error = reply.json()["error"]
    assert (reply.status_code, error["code"]) == (400, "context_length_exceeded")
    assert error["type"] == "invalid_request_error"
    assert error["param"] == ("messages" if route.endswith("completions") else "input")
    assert "history 25" in error["message"]
    assert "the model takes 2000" in error["message"]
    assert not scripted.requests


@pytest.mark.parametrize(("route", "wire"), LANES)
def test_what_fits_is_sent(serve: Serve, scripted: ScriptedBackend, route: str, wire: str) -> None:
    served = serve(fresh=True, providers=[provider(scripted, wire=wire, overrides=RULES)])
    assert post(served, asked(route, "word " * 700), route).status_code == 200
    assert len(scripted.requests) == 1


@pytest.mark.parametrize(("route", "wire"), LANES)
def test_a_picture_counts_the_same_however_large(
    serve: Serve, scripted: ScriptedBackend, route: str, wire: str
) -> None:
    rules = {"request": {"context_window": 4000, "chars_per_token": 2.0}}
    served = serve(fresh=True, providers=[provider(scripted, wire=wire, overrides=rules)])
    assert post(served, asked(route, "what is it?", IMAGE), route).status_code == 200
    assert len(scripted.requests) == 1
