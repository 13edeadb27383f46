"""Whatever a request is, it is sent on or refused as the client's fault: never a fault of ours."""

from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.odd import damage
from tests.laws.pairs import BACKENDS, CLIENTS, new_ids
from tests.laws.profiles import EXAMPLES, NAMES, row
from tests.laws.requests import bodies
from tests.laws.test_law_round_trip import SHAPES
from translators.errors import ProxyError
from translators.ir import Shape
from translators.profile import Profile
from translators.translate import translate_request

Json = dict[str, Any]


def asked(client: Shape, backend: Shape, request: Json, profile: Profile) -> Json | ProxyError:
    """What goes to the backend in the lane that the service would choose, or the refusal."""
    speaks, spoken = CLIENTS[client], BACKENDS[backend]
    try:
        if client == backend and spoken.passes(request, profile):
            speaks.check(request)
            return spoken.edit_request(request, profile).body
        call = speaks.decode_request(request, new_ids())
        return translate_request(call, speaks, spoken, profile).encoded.body
    except ProxyError as error:
        return error


@pytest.mark.parametrize("backend", SHAPES)
@pytest.mark.parametrize("client", SHAPES)
@settings(max_examples=EXAMPLES)
@given(name=st.sampled_from(NAMES), data=st.data())
def test_a_damaged_request_is_sent_on_or_refused(
    client: Shape, backend: Shape, name: str, data: st.DataObject
) -> None:
    request = copy.deepcopy(data.draw(bodies(client)))
    for _ in range(data.draw(st.integers(1, 3))):
        damage(data.draw, request)  # type: ignore[arg-type]
    request["model"] = "m"
    before = orjson.dumps(request)
    out = asked(client, backend, request, row(name, backend))
    if isinstance(out, ProxyError):
        assert (out.http_status, out.body()["type"]) == (400, "invalid_request_error")
        assert out.param
    else:
        assert orjson.dumps(out)
    assert orjson.dumps(request) == before
