"""Who is asked first, over a real gateway: abilities, predicted losses, shares, conversations."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from app.plan import Plan, make_plan
from app.request import Request
from providers.base import Surface, Target
from tests.app.conftest import Serve
from tests.app.fleet import PIXEL
from tests.app.listed import CHAT, HI, RESPONSES, ListedBackend, by_account, loaded, post, target
from tests.app.test_streams import wait_for_log
from tests.backends.replies import json_reply
from translators.errors import bad_request

LOOK = {"type": "object", "properties": {}}
CHAT_TOOLS = [{"type": "function", "function": {"name": "look", "parameters": LOOK}}]
TOOLS = [{"type": "function", "name": "look", "parameters": LOOK, "strict": False}]
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
CHAT_SCHEMA = {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA}}
NEW_SCHEMA = {"type": "json_schema", "name": "s", "schema": SCHEMA}
CHAT_IMAGE = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": PIXEL}}]}]
IMAGE = [{"role": "user", "content": [{"type": "input_image", "image_url": PIXEL, "detail": "auto"}]}]


# --- abilities -------------------------------------------------------------------------

PLAIN, ABLE = "claude-plain", "claude-able"
NO_TOOLS = {"supported_parameters": ["temperature"]}
NO_SCHEMA = {"supported_parameters": ["temperature", "tools", "response_format"]}
NO_IMAGES = {"architecture": {"input_modalities": ["text"]}}
SHORT = {"context_length": 1000}
ABILITIES: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "tools": (NO_TOOLS, CHAT, {"tools": CHAT_TOOLS}),
    "tools of Responses": (NO_TOOLS, RESPONSES, {"tools": TOOLS}),
    "functions": (NO_TOOLS, CHAT, {"functions": [{"name": "look", "parameters": LOOK}]}),
    "a schema": (NO_SCHEMA, CHAT, {"response_format": CHAT_SCHEMA}),
    "a schema of Responses": (NO_SCHEMA, RESPONSES, {"text": {"format": NEW_SCHEMA}}),
    "a picture": (NO_IMAGES, CHAT, {"messages": CHAT_IMAGE}),
    "a picture of Responses": (NO_IMAGES, RESPONSES, {"input": IMAGE}),
    "length": (SHORT, CHAT, {"messages": [{"role": "user", "content": "word " * 2000}]}),
    "length of Responses": (SHORT, RESPONSES, {"input": "word " * 2000}),
}


@pytest.mark.parametrize("name", ["chat-balanced", "both"])
@pytest.mark.parametrize("case", ABILITIES)
def test_what_is_known_to_be_unable_is_left_out(
    serve: Serve, backend: ListedBackend, name: str, case: str
) -> None:
    facts, path, body = ABILITIES[case]
    backend.lists = {"a": [{"id": PLAIN, **facts}], "b": [{"id": ABLE}]}
    both = [{"model": f"a/{PLAIN}", "weight": 1e9}, {"model": f"b/{ABLE}"}]
    served = loaded(
        serve(fresh=True, providers=[backend.account("a"), backend.account("b")], groups={"both": both})
    )
    assert target(post(served, path, model=name, prompt_cache_key="k")) == f"a/{PLAIN}"
    assert target(post(served, path, model=name, **body)) == f"b/{ABLE}"
    assert [each["target"] for each in wait_for_log(served, 2)[1]["candidates"]] == [f"b/{ABLE}"]


@pytest.mark.parametrize(
    ("case", "code", "words"),
    [
        ("tools", "unsupported_parameter", "takes function tools"),
        ("a picture", "unsupported_parameter", "takes images"),
        ("a schema", "unsupported_parameter", "takes a JSON schema"),
        ("length", "context_length_exceeded", "takes a prompt of about"),
    ],
)
def test_where_none_is_able_it_says_so(
    serve: Serve, backend: ListedBackend, case: str, code: str, words: str
) -> None:
    facts, path, body = ABILITIES[case]
    backend.lists = {name: [{"id": PLAIN, **facts}] for name in "ab"}
    served = loaded(serve(fresh=True, providers=[backend.account("a"), backend.account("b")]))
    error = post(served, path, model="chat-balanced", **body)
    assert (error.status_code, error.json()["error"]["code"], error.json()["error"]["param"]) == (
        400,
        code,
        "model",
    )
    assert words in error.json()["error"]["message"]
    assert backend.requests == []
    exact = post(served, path, model=f"a/{PLAIN}", **body)
    # Named exactly it is asked, unless what it was given is far longer than the backend says it takes.
    assert exact.status_code == (400 if case == "length" else 200)


def test_a_schema_that_is_put_into_other_words_is_taken_by_every_model(
    serve: Serve, backend: ListedBackend
) -> None:
    backend.lists = {name: [{"id": PLAIN, **NO_SCHEMA}] for name in "ab"}
    told = backend.account("b", overrides={"output_format": {"json_schema": "prompt"}})
    served = loaded(serve(fresh=True, providers=[backend.account("a"), told]))
    assert target(post(served, model="chat-balanced", response_format=CHAT_SCHEMA)) == f"b/{PLAIN}"


def test_text_that_takes_more_bytes_than_characters_is_not_taken_for_longer(
    serve: Serve, backend: ListedBackend
) -> None:
    backend.lists = {name: [{"id": PLAIN, **SHORT}] for name in "ab"}
    served = loaded(serve(fresh=True, providers=[backend.account("a"), backend.account("b")]))
    body = b'{"model":"chat-balanced","messages":[{"role":"user","content":"%b"}]}' % (b"\\u4f60" * 3000)
    with served.client() as client:
        assert client.post(CHAT, content=body).status_code == 200


def test_a_configured_window_goes_before_the_listed_one(serve: Serve, backend: ListedBackend) -> None:
    backend.lists = {name: [{"id": PLAIN, **SHORT}] for name in "ab"}
    longer = backend.account("b", overrides={"request": {"context_window": 100_000}})
    served = loaded(serve(fresh=True, providers=[backend.account("a"), longer]))
    body = {"messages": [{"role": "user", "content": "word " * 2000}]}
    assert target(post(served, model="chat-balanced", **body)) == f"b/{PLAIN}"


# --- predicted losses ------------------------------------------------------------------

LOSSES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "logprobs": ({"request": {"drop": ["logprobs", "top_logprobs"]}}, {"logprobs": True, "top_logprobs": 2}),
    "a picture": (
        {"messages": {"media": {"image": "describe"}}},
        {"messages": CHAT_IMAGE},
    ),
    "a picture it refuses": ({"messages": {"media": {"image": "refuse"}}}, {"messages": CHAT_IMAGE}),
    "tools it does not take": ({"tools": {"supported": False}}, {"tools": CHAT_TOOLS}),
    "a schema": ({"output_format": {"json_schema": "drop"}}, {"response_format": CHAT_SCHEMA}),
    "a clamped value": ({"request": {"clamp": {"temperature": [0, 1]}}}, {"temperature": 1.5}),
}


@pytest.mark.parametrize("name", ["chat-balanced", "both"])
@pytest.mark.parametrize("case", LOSSES)
def test_what_loses_least_of_this_request_goes_first(
    serve: Serve, backend: ListedBackend, name: str, case: str
) -> None:
    overrides, body = LOSSES[case]
    lossy = backend.account("a", PLAIN, overrides=overrides)
    both = [{"model": f"a/{PLAIN}", "weight": 1e9}, {"model": f"b/{ABLE}"}]
    served = serve(fresh=True, providers=[lossy, backend.account("b", ABLE)], groups={"both": both})
    for _ in range(2):
        assert target(post(served, model=name)) == f"a/{PLAIN}"
        reply = post(served, model=name, **body)
        assert target(reply) == f"b/{ABLE}"
        assert "x-dragoman-dropped" not in reply.headers
    first, second = wait_for_log(served, 2)[1]["candidates"]
    assert (first["target"], first["loss"]) == (f"b/{ABLE}", 0)
    assert second["loss"] > 0
    assert second["reasons"]


def test_a_shape_that_has_to_be_translated_is_no_loss(serve: Serve, backend: ListedBackend) -> None:
    """The order of the class stands, whatever the client speaks."""
    accounts = [backend.account("a", PLAIN, wire="responses"), backend.account("b", PLAIN)]
    served = serve(fresh=True, providers=accounts)
    assert target(post(served, model="chat-balanced")) == f"a/{PLAIN}"
    assert target(post(served, RESPONSES, model="chat-balanced")) == f"a/{PLAIN}"


def test_a_count_too_many_is_seen(serve: Serve, backend: ListedBackend) -> None:
    """`n: 2` is no request like `n: 1`."""
    accounts = [backend.account("a", PLAIN, wire="responses"), backend.account("b", PLAIN)]
    served = serve(fresh=True, providers=accounts)
    assert target(post(served, model="chat-balanced", n=1)) == f"a/{PLAIN}"
    assert target(post(served, model="chat-balanced", n=2)) == f"b/{PLAIN}"


def test_what_a_backend_turned_out_not_to_take_counts_from_then_on(
    serve: Serve, backend: ListedBackend
) -> None:
    def refuse(request: Any) -> Any:
        unknown = {
            "error": {"message": "Unknown parameter: 'seed'.", "param": "seed", "code": "unknown_parameter"}
        }
        return json_reply(unknown, 400) if "seed" in request.json else None

    backend.play(refuse, model=PLAIN)
    served = serve(fresh=True, providers=[backend.account("a", PLAIN), backend.account("b", ABLE)])
    assert target(post(served, model="chat-balanced", seed=1)) == f"a/{PLAIN}"
    assert target(post(served, model="chat-balanced", seed=1)) == f"b/{ABLE}"
    assert target(post(served, model="chat-balanced")) == f"a/{PLAIN}"


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
@pytest.mark.parametrize(
    "odd",
    [{"role": {"a": []}, "content": "x"}, {"type": ["x"], "role": [], "content": [{"type": {}}]}, 5, None],
)
def test_odd_bodies_are_the_clients_fault(serve: Serve, backend: ListedBackend, path: str, odd: Any) -> None:
    served = serve(providers=[backend.account("a", PLAIN), backend.account("b", ABLE)])
    given = {"input": [odd]} if path == RESPONSES else {"messages": [odd]}
    assert post(served, path, model="chat-balanced", tools=[odd], **given).status_code == 400
    assert served.log("fault") == []


def test_a_strict_request_goes_where_nothing_is_lost(serve: Serve, backend: ListedBackend) -> None:
    lossy = {"overrides": {"request": {"drop": ["seed"]}}}
    accounts = [backend.account("a", "m", **lossy), backend.account("b", "m")]
    served = serve(fresh=True, providers=accounts, fallbacks={"a/m": ["b/m"]})
    strict = {"x-dragoman-strict": "true"}
    for name in ("m", "a/m"):
        assert target(post(served, headers=strict, model=name, seed=1)) == "b/m"
        assert target(post(served, model=name, seed=1)) == "a/m"
    backend.clear()
    alone = serve(
        fresh=True, providers=[backend.account("a", "m", **lossy), backend.account("c", "m", **lossy)]
    )
    refused = post(alone, headers=strict, model="m", seed=1)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "seed")
    assert backend.requests == []


# --- conversations ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        ({"prompt_cache_key": "k"}, {}),
        ({}, {"session-id": "s"}),
        ({}, {"x-conversation-id": "c"}),
        ({"prompt_cache_key": "k"}, {"session-id": "another each time"}),
    ],
)
def test_a_conversation_stays_where_it_was_answered(
    serve: Serve, backend: ListedBackend, body: dict[str, Any], headers: dict[str, str]
) -> None:
    members = [{"model": f"{name}/m"} for name in "abcd"]
    served = serve(
        fresh=True, providers=[backend.account(name, "m") for name in "abcd"], groups={"all": members}
    )
    first = target(post(served, headers=headers, model="all", **body))
    assert {target(post(served, headers=headers, model="all", **body)) for _ in range(10)} == {first}
    backend.play(lambda request: json_reply({}, 503) if request.path.startswith(f"/{first[0]}/") else None)
    second = target(post(served, headers=headers, model="all", **body))
    assert second != first
    backend.play()
    assert target(post(served, headers=headers, model="all", **body)) == second, "it has moved"
    assert wait_for_log(served, 13)[-1]["candidates"][0]["sticky"] is True


DRAWS = """
import sys
from app.routing.routing import draw
from providers.base import Target
from providers.directory import Choice
from providers.unavailable import UnavailableProvider
choices = [Choice(Target(UnavailableProvider(name, "openai", ""), "m"), weight=1.0) for name in "abcd"]
print([min(choices, key=lambda c: draw(c, 0, str(n))).target.provider.name for n in range(100)])
"""


def test_conversations_draw_the_same_in_every_process() -> None:
    drawn = {
        subprocess.run([sys.executable, "-c", DRAWS], capture_output=True, check=True, text=True).stdout
        for _ in range(2)
    }
    assert len(drawn) == 1
    assert {*"abcd"} <= {*drawn.pop()}


def test_a_group_is_shared_by_weight(serve: Serve, backend: ListedBackend) -> None:
    """Of 600 requests a share of 0.6 takes 360; 48 are four standard deviations."""
    weights = {"a": 6.0, "b": 3.0, "c": 1.0}
    members = [{"model": f"{name}/m", "weight": weight} for name, weight in weights.items()]
    served = serve(
        fresh=True, providers=[backend.account(name, "m") for name in weights], groups={"all": members}
    )
    with served.client() as client:
        for number in range(600):  # by conversations, so that the same is drawn each time
            client.post(CHAT, json={"model": "all", "messages": HI, "prompt_cache_key": f"c{number}"})
    counts = Counter(backend.asked())
    for name, weight in weights.items():
        assert abs(counts[name] - 60 * weight) < 48, counts


def test_every_member_of_a_large_group_gets_its_share(serve: Serve, backend: ListedBackend) -> None:
    names = [f"n{number}" for number in range(12)]
    members = [{"model": f"{name}/m"} for name in names]
    served = serve(
        fresh=True, providers=[backend.account(name, "m") for name in names], groups={"all": members}
    )
    with served.client() as client:
        for _ in range(240):
            client.post(CHAT, json={"model": "all", "messages": HI})
    assert {*backend.asked()} == {*names}


# --- what has no make ------------------------------------------------------------------


def test_what_the_request_itself_overrides_counts(serve: Serve, backend: ListedBackend) -> None:
    lossy = backend.account("a", PLAIN, overrides={"request": {"drop": ["seed"]}})
    served = serve(fresh=True, providers=[lossy, backend.account("b", ABLE)])
    own = {"x-dragoman-overrides": '{"request": {"drop": []}}'}
    assert target(post(served, headers=own, model="chat-balanced", seed=1)) == f"a/{PLAIN}"
    assert target(post(served, model="chat-balanced", seed=1)) == f"b/{ABLE}"


def test_embeddings_lose_nothing(serve: Serve, backend: ListedBackend) -> None:
    models = ("text-embedding-3-small",)
    served = serve(fresh=True, providers=[backend.account("a", *models), backend.account("b", *models)])
    backend.play(by_account(a=json_reply({}, 503)))
    with served.client() as client:
        reply = client.post("/v1/embeddings", json={"model": "embedding", "input": "hi"})
    assert target(reply) == "b/text-embedding-3-small"


def test_where_no_provider_can_be_asked_it_says_why(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    off = [{"name": name, "kind": "databricks", "config_profile": "nowhere"} for name in ("x", "y")]
    served = serve(fresh=True, providers=off, groups={"all": [{"model": "x/m"}, {"model": "y/m"}]})
    reply = post(served, model="all")
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "provider_unavailable")


def test_one_bad_request_is_not_held_against_others_like_it(
    serve: Serve, backend: ListedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value that one backend cannot be told says nothing of the next request of the same make."""

    def picky(request: Request, asked: Target, surface: Surface) -> Plan:
        if asked.provider.name == "a" and b"odd" in request.raw:
            raise bad_request("an odd value")
        return make_plan(request, asked, surface)

    monkeypatch.setattr("app.routing.prediction.make_plan", picky)
    served = serve(fresh=True, providers=[backend.account("a", PLAIN), backend.account("b", ABLE)])
    for said, answering in {"odd": f"b/{ABLE}", "even": f"a/{PLAIN}"}.items():
        messages = [{"role": "user", "content": said}]
        assert target(post(served, model="chat-balanced", messages=messages)) == answering


def test_only_so_many_predictions_are_kept(
    serve: Serve, backend: ListedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.routing.prediction.MAX_KEPT", 4)
    served = serve(fresh=True, providers=[backend.account("a", PLAIN), backend.account("b", ABLE)])
    for count in range(5):
        assert target(post(served, model="chat-balanced", n=1, top_logprobs=count, logprobs=True))
    assert len(served.gateway.router._predictor._kept) == 4
