"""How a target is asked: lanes, the bytes sent, strictness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from app.payload import with_model
from app.plan import make_plan
from app.request import parse_request
from app.telemetry.trace import Trace
from providers.base import Surface, Target
from providers.extra_body import ExtraBody
from translators.errors import ProxyError
from translators.ir import Shape
from translators.profile import Profile, RequestRules
from translators.rejections import Rejection


@dataclass
class Account:
    """A provider that is only asked for its profile, and what it is known to refuse."""

    rules: Profile = field(default_factory=Profile)
    name: str = "p"
    kind: str = "openai"
    unavailable: str | None = None
    refused: Sequence[Rejection] = ()
    extra_body: ExtraBody | None = None

    def surfaces(self, model: str, client: Shape) -> Sequence[Surface]:
        return ("chat",)

    def profile(self, model: str, surface: Surface, overrides: Any = None) -> Profile:
        return self.rules

    def known_rejections(self, model: str, surface: Surface) -> Sequence[Rejection]:
        return self.refused


def plan(
    shape: Shape | None,
    body: Any,
    surface: Surface = "chat",
    rules: Profile | None = None,
    strict: bool = False,
    refused: Sequence[Rejection] = (),
):
    raw = body if isinstance(body, bytes) else orjson.dumps(body)
    headers = {b"x-dragoman-strict": b"true"} if strict else {}
    request = parse_request(shape, raw, headers, Trace(b"r1", ""))
    return make_plan(request, Target(Account(rules or Profile(), refused=refused), "m"), surface)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b'{"model":"p/m","x":1.0}', b'{"model":"m","x":1.0}'),
        (
            b'{ "model" :\n "p/m" , "n": 12345678901234567890}',
            b'{ "model" :\n "m" , "n": 12345678901234567890}',
        ),
        (b'{"text":"a \\"model\\" of","model":"p/m"}', b'{"text":"a \\"model\\" of","model":"m"}'),
        # Two of them, an escaped name, an escaped key: written anew.
        (b'{"a":{"model":"p/m"},"model":"p/m"}', b'{"a":{"model":"p/m"},"model":"m"}'),
        (b'{"type":"model","model":"p/m"}', b'{"type":"model","model":"m"}'),
        (b'{"model":"p\\/m"}', b'{"model":"m"}'),
        (b'{"mod\\u0065l":"p/m","a":{"model":"p/m"}}', b'{"model":"m","a":{"model":"p/m"}}'),
    ],
)
def test_the_models_name_is_rewritten_in_the_clients_own_bytes(raw: bytes, expected: bytes) -> None:
    assert with_model(raw, orjson.loads(raw), "m") == expected


def test_a_bare_name_needs_no_rewriting() -> None:
    raw = b'{ "model": "m" }'
    assert with_model(raw, orjson.loads(raw), "m") is raw


def test_a_name_with_regex_signs() -> None:
    assert with_model(b'{"model":"x"}', {"model": "x"}, r"a\1\g<0>") == orjson.dumps({"model": r"a\1\g<0>"})


CHAT = b'{"model": "p/m", "messages": [{"role": "user", "content": "hi"}], "temperature": 0.50}'


def test_pass_sends_the_clients_bytes() -> None:
    made = plan("chat", CHAT)
    assert (made.lane, made.stream, made.encoded.losses) == ("pass", False, [])
    assert made.payload == CHAT.replace(b"p/m", b"m")


def test_pass_writes_anew_what_the_profile_changes() -> None:
    made = plan("chat", CHAT, rules=Profile(request=RequestRules(drop=("temperature",))))
    assert made.lane == "pass"
    assert orjson.loads(made.payload) == {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    assert [loss.pointer for loss in made.encoded.losses] == ["/temperature"]


def test_what_was_learned_is_left_out_from_the_start() -> None:
    hot, seed = Rejection(("temperature",)), Rejection(("seed",))
    passed = plan("chat", CHAT, refused=[hot, seed])
    assert passed.lane == "pass"
    assert orjson.loads(passed.payload) == {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    assert [loss.pointer for loss in passed.encoded.losses] == ["/temperature"]
    asked = {"model": "p/m", "input": "hi", "temperature": 0.5}
    translated = plan("responses", asked, refused=[hot, seed])
    assert "temperature" not in orjson.loads(translated.payload)
    assert [loss.pointer for loss in translated.encoded.losses] == ["/temperature"]
    assert translated.left_out == [hot, seed]


def test_what_was_learned_of_other_fields_costs_the_clients_bytes_nothing() -> None:
    assert plan("chat", CHAT, refused=[Rejection(("seed",))]).payload == CHAT.replace(b"p/m", b"m")


def test_strict_and_the_switch_ask_with_everything() -> None:
    learned = [Rejection(("temperature",))]
    off = Profile(request=RequestRules(learn_rejections=False))
    for made in (
        plan("chat", CHAT, refused=learned, strict=True),
        plan("chat", CHAT, rules=off, refused=learned),
    ):
        assert b"temperature" in made.payload
        assert made.left_out == []


def test_strict_refuses_instead_of_dropping() -> None:
    rules = Profile(request=RequestRules(drop=("temperature",)))
    with pytest.raises(ProxyError) as caught:
        plan("chat", CHAT, rules=rules, strict=True)
    assert (caught.value.http_status, caught.value.param) == (400, "temperature")
    assert plan("chat", CHAT, strict=True).encoded.losses == []


def test_translate_between_shapes() -> None:
    made = plan("responses", {"model": "p/m", "input": "hi", "stream": True})
    sent = orjson.loads(made.payload)
    assert (made.lane, made.stream) == ("translate", True)
    assert (sent["model"], sent["messages"]) == ("m", [{"role": "user", "content": "hi"}])


def test_the_way_back_of_a_passed_request_is_made_on_demand() -> None:
    made = plan("chat", CHAT)
    assert made.translation is None
    assert made.translate() is made.translate()


def test_embeddings_pass_untouched_but_for_the_name() -> None:
    raw = b'{"model":"p/m","input":["a"],"encoding_format":"base64","whatever":1}'
    made = plan(None, raw, "embeddings", Profile(request=RequestRules(drop=("whatever",))))
    assert made.payload == raw.replace(b"p/m", b"m")
