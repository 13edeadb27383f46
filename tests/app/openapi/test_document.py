"""The OpenAPI document: whole, true of the routes, and right in itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from jsonschema import Draft202012Validator

from app.main import create_app
from app.openapi import document
from app.routes import Endpoint
from config.schema import Config
from docs.generate import FILES, ROOT, is_stale
from tests.app.conftest import Serve, provider
from tests.backends.scripted import ScriptedBackend

Json = dict[str, Any]
DOCUMENT = document()
NOT_TOLD = {"HEAD"}
"""Comes with every GET."""


def operations() -> Iterator[tuple[str, str, Json]]:
    for path, item in DOCUMENT["paths"].items():
        for method, operation in item.items():
            yield method.upper(), path, operation


def served() -> Iterator[tuple[str, str]]:
    for route in create_app(Config()).router.routes:
        endpoint = getattr(route, "app", None)
        if isinstance(endpoint, Endpoint):
            path = route.path.replace(":path}", "}")  # type: ignore[attr-defined]
            yield from ((method, path) for method in endpoint.methods if method not in NOT_TOLD)


def test_every_route_is_there_and_no_other() -> None:
    assert sorted(served()) == sorted((method, path) for method, path, _ in operations())


def test_operations_have_names_of_their_own() -> None:
    names = [operation["operationId"] for _, _, operation in operations()]
    assert len(set(names)) == len(names)


def followed(value: Any) -> Any:
    """A copy with every reference to components followed."""
    if isinstance(value, list):
        return [followed(each) for each in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        found: Any = DOCUMENT
        for step in value["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        return followed(found)
    return {key: followed(each) for key, each in value.items()}


def media() -> Iterator[tuple[str, Json]]:
    for method, path, raw in operations():
        operation = followed(raw)
        contents = [("request", operation.get("requestBody", {}).get("content", {}))]
        contents += [(status, answer.get("content", {})) for status, answer in operation["responses"].items()]
        for part, content in contents:
            yield from ((f"{method} {path} {part} {kind}", each) for kind, each in content.items())


@pytest.mark.parametrize(
    ("name", "each"), list(media()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_schemas_are_schemas_and_examples_fit_them(name: str, each: Json) -> None:
    Draft202012Validator.check_schema(each["schema"])
    if "openapi.json" not in name:
        assert each["examples"]
    for example in each.get("examples", {}).values():
        Draft202012Validator(each["schema"]).validate(example["value"])


def test_every_component_is_used() -> None:
    told = orjson.dumps(DOCUMENT).decode()
    for kind, components in DOCUMENT["components"].items():
        for name in components if kind != "securitySchemes" else ():
            assert f'"#/components/{kind}/{name}"' in told, name


@pytest.mark.parametrize("name", FILES)
def test_the_file_is_up_to_date(name: str) -> None:
    assert not is_stale(name, FILES[name]()), "run `make docs`"


def test_a_stale_file_is_noticed() -> None:
    assert is_stale("docs/openapi.json", b"{}")
    assert is_stale("docs/nothing.json", b"{}")
    assert Path(ROOT / "docs/openapi.json").exists()


def test_it_is_served_without_a_key(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)], server={"api_keys": ["k" * 20]})
    with served.client() as client:
        reply = client.get("/openapi.json")
        assert client.get("/v1/models").status_code == 401
    assert (reply.status_code, reply.headers["content-type"]) == (200, "application/json")
    assert reply.json() == DOCUMENT
    assert reply.json()["openapi"] == "3.1.0"


def test_nothing_of_it_is_imported_before_it_is_asked_for() -> None:
    code = "import sys, app.main, app.server; print([name for name in sys.modules if 'app.openapi' in name])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert ran.stdout.strip() == "[]"


@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_examples_of_requests_are_answered(serve: Serve, scripted: ScriptedBackend, wire: str) -> None:
    """Through a gateway, with a model that is there; the answer fits its schema."""
    served = serve(providers=[provider(scripted, wire)])
    with served.client() as client:
        for method, path, raw in operations():
            operation = followed(raw)
            for told in operation.get("requestBody", {}).get("content", {}).values():
                for each in told["examples"].values():
                    check(client, method, path, operation, {**each["value"], "model": "p/m"})


def check(client: httpx.Client, method: str, path: str, operation: Json, body: Json) -> None:
    reply = client.request(method, path, json=body)
    if "previous_response_id" in body:
        assert reply.status_code == 400
    elif "{" in path:  # of nothing that is there
        assert reply.status_code == 404
    else:
        assert reply.status_code == 200, reply.text
    content = operation["responses"][str(reply.status_code)]["content"]
    kind = reply.headers["content-type"].partition(";")[0]
    assert kind in content
    if kind == "application/json":
        Draft202012Validator(content[kind]["schema"]).validate(reply.json())
