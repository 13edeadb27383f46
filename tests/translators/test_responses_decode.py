"""A Responses request as a `Call`: cases as data, and any JSON whatever."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import ResponseInputItemParam, ToolParam
from openai.types.responses.response_create_params import ResponseCreateParamsBase

from translators.errors import ProxyError
from translators.ir import Call, Json
from translators.responses.decode import decode_request

CASES = json.loads(Path(__file__).parents[1].joinpath("cases/responses_requests.json").read_text())


def decode(body: Json) -> Call:
    count = itertools.count(1)
    return decode_request(body, lambda prefix: f"{prefix}{next(count)}")


def plain(value: Any) -> Any:
    """A value of the neutral model as JSON; fields that have their default are left out."""
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if not dataclasses.is_dataclass(value):
        return value
    out = {"is": type(value).__name__}
    for field in dataclasses.fields(value):
        found = getattr(value, field.name)
        missing = dataclasses.MISSING
        default = field.default if field.default_factory is missing else field.default_factory()
        if default is missing or found != default:
            out[field.name] = plain(found)
    return out


@pytest.mark.parametrize("case", CASES["read"], ids=lambda case: case["name"])
def test_read(case: Json) -> None:
    body = json.dumps(case["body"])
    call = decode(case["body"])
    assert {key: plain(getattr(call, key)) for key in case["want"]} == case["want"]
    assert json.dumps(case["body"]) == body, "the client's body is left as it was"


@pytest.mark.parametrize("case", CASES["refused"], ids=lambda case: case["name"])
def test_refused(case: Json) -> None:
    with pytest.raises(ProxyError) as caught:
        decode(case["body"])
    error = caught.value
    assert (error.kind, error.param, error.http_status) == ("bad_request", case["param"], 400)
    assert error.code == case.get("code")
    assert error.message
    assert len(error.message) < 300


# --- nothing of the newest SDK's request is unknown -------------------------------------------

# Reach a backend of this shape only, as they are.
CARRIED = {"access_programs", "background_options", "image"}


def test_every_request_field_is_read_or_carried() -> None:
    fields = ResponseCreateParamsBase.__annotations__.keys()
    bodies = [case["body"] for case in CASES["read"] + CASES["refused"]]
    known = {key for body in bodies for key in body}
    assert fields - known <= CARRIED
    assert decode({"model": "m", "input": "x", **dict.fromkeys(CARRIED, 1)}).extra == dict.fromkeys(
        CARRIED, 1
    )


def _types(union: Any) -> set[str]:
    found: set[str] = set()
    for member in get_args(union):
        hint = getattr(member, "__annotations__", {}).get("type", "")
        text = getattr(hint, "__forward_arg__", str(hint))
        found |= set(text.split('"')[1::2]) | set(text.split("'")[1::2])
    return found


@pytest.mark.parametrize("union", [ResponseInputItemParam, ToolParam], ids=["items", "tools"])
def test_every_type_of_the_sdk_has_a_case(union: Any) -> None:
    """33 input items, 16 tools: each is read, kept whole or refused by a case of its own."""
    text = json.dumps(CASES)
    types = _types(union)
    assert len(types) > 15
    assert {name for name in types if f'"type": "{name}"' not in text} <= {"web_search_2025_08_26"}


# --- whatever comes, it is a call or a 400 -----------------------------------------------------

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**31), 2**31)
    | st.floats(allow_nan=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_WORDS = sorted(
    {
        word
        for case in CASES["read"]
        for word in json.dumps(case["body"]).split('"')[1::2]
        if word.isidentifier()
    }
)


@st.composite
def mutants(draw: st.DrawFn) -> Json:
    """A good request with some of its values replaced by any JSON."""
    body: Json = json.loads(json.dumps(draw(st.sampled_from(CASES["read"]))["body"]))
    for _ in range(draw(st.integers(1, 3))):
        holder: Any = body
        while isinstance(holder, (dict, list)) and holder:
            key = draw(st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder))))
            inner = holder[key]
            if not isinstance(inner, (dict, list)) or not inner or draw(st.integers(0, 3)) == 0:
                holder[key] = draw(JSON)
                break
            holder = inner
        body[draw(st.sampled_from(_WORDS))] = draw(JSON)
    return body


@settings(max_examples=400)
@given(body=mutants() | st.dictionaries(st.sampled_from(_WORDS), JSON, max_size=6))
def test_anything_is_a_call_or_a_400(body: Json) -> None:
    try:
        call = decode(body)
    except ProxyError as error:
        faults = [error]
    else:
        faults = []
        json.dumps(plain(call))
    assert all(fault.http_status == 400 and fault.param and fault.message for fault in faults)


@pytest.mark.parametrize(
    ("asked", "places"),
    [
        ({"reasoning": {"effort": "low"}, "logprobs": True}, {}),
        ({"reasoning_effort": "low", "logprobs": True}, {"effort": "/reasoning_effort"}),
        ({"reasoning_effort": "low", "reasoning": {"effort": "high"}, "logprobs": True}, {}),
        ({"top_logprobs": 2}, {"logprobs": "/top_logprobs"}),
        ({"include": ["message.output_text.logprobs"]}, {"logprobs": "/include"}),
    ],
)
def test_parameters_said_in_other_words_are_known_by_them(asked: Json, places: dict[str, str]) -> None:
    assert decode({"model": "m", "input": "hi", **asked}).places == places
