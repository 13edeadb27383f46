"""Requests made from the OpenAPI document, right and wrong ones, against a gateway.

What schemathesis checks: no failure of the gateway, only statuses, content types, headers and bodies that are
documented, and no success for what the document says is wrong. `make fuzz` asks longer.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from app.openapi import document
from tests.app.conftest import Serve, Served, provider
from tests.backends.scripted import ScriptedBackend

DOCUMENT = document()
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
CHECKS = [
    *(not_a_server_error, checks.status_code_conformance, checks.content_type_conformance),
    *(checks.response_schema_conformance, checks.response_headers_conformance),
]
EXAMPLES = int(os.environ.get("DRAGOMAN_FUZZ_EXAMPLES", "12"))
"""Of each operation, right and wrong."""
ENDLESS = {"/events"}
"""Ends when its client leaves."""
MODELS = ["chat/m", "responses/m"]


def operations() -> Iterator[Any]:
    """Those without `/v1` are the same ones."""
    for path, methods in DOCUMENT["paths"].items():
        for method, told in methods.items():
            if path not in ENDLESS and not told["operationId"].endswith("Bare"):
                yield SCHEMA[path][method]


@pytest.fixture
def served(serve: Serve, scripted: ScriptedBackend) -> Served:
    """Backends of both shapes, and a store that forgets with the process."""
    wires = [provider(scripted, name=wire, wire=wire) for wire in ("chat", "responses")]
    return serve(providers=wires, store={"kind": "memory"})


def asked() -> Iterator[tuple[Any, str]]:
    for operation in operations():
        yield operation, "right"
        if operation.body or any(can_be_wrong(each.definition) for each in operation.query):
            yield operation, "wrong"


def can_be_wrong(parameter: Any) -> bool:
    """Any text of a query is a string."""
    return set(parameter["schema"]) > {"type"}


WAYS = {"right": GenerationMode.POSITIVE, "wrong": GenerationMode.NEGATIVE}


@pytest.mark.parametrize(
    ("operation", "way"), list(asked()), ids=lambda each: each if isinstance(each, str) else each.label
)
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), deadline=None)
@given(data=st.data())
def test_what_comes_back_is_what_the_document_says(
    served: Served, operation: Any, way: str, data: st.DataObject
) -> None:
    case: Case = data.draw(operation.as_strategy(generation_mode=WAYS[way]))
    body = case.body
    if isinstance(body, dict) and isinstance(body.get("model"), str) and body["model"].strip():
        body["model"] = data.draw(st.sampled_from(MODELS))
    wrong = [checks.negative_data_rejection] if way == "wrong" else []
    case.call_and_validate(served.base, checks=[*CHECKS, *wrong], timeout=10)
