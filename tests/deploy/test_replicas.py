"""The replicas of the compose file: no file, a PostgreSQL that the environment names, a real nginx."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import orjson
import pytest
import yaml
from websockets.sync.client import connect

from tests.app.store.conftest import Postgres
from tests.app.store.conftest import postgres as postgres
from tests.backends.gateway import Gateway
from tests.backends.scripted import ScriptedBackend
from tests.deploy.dockerfile import ROOT
from tests.deploy.test_topology import Topology, _quit, _wait_for, free_port, nginx_configuration

KEY = {"authorization": "Bearer k"}
NAMES = ("replica-1", "replica-2")


def told(name: str) -> dict[str, str]:
    """What the compose file says in a service's environment."""
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"][name]["environment"]


@pytest.fixture
def replicas(tmp_path: Path, scripted: ScriptedBackend, postgres: Postgres) -> Iterator[Topology]:
    """Each with a state folder of its own: what they have in common is the database alone."""
    if shutil.which("nginx") is None:
        pytest.skip("needs nginx")
    values = {
        "DRAGOMAN_API_KEY": "k",
        "DRAGOMAN_DATABASE_URL": postgres.new_database(),
        "OPENAI_BASE_URL": f"{scripted.origin}/v1",
    }
    with ExitStack() as stack:
        gateways = []
        for name in NAMES:
            (tmp_path / name).mkdir()
            env = {each: values.get(each, "") for each in told(name)}
            gateways.append(stack.enter_context(Gateway(tmp_path / name, env=env)))
        port = free_port()
        file = nginx_configuration(tmp_path, port, gateways)
        nginx = subprocess.Popen(["nginx", "-c", str(file), "-p", str(tmp_path)], stderr=subprocess.DEVNULL)
        stack.callback(_quit, nginx)
        _wait_for(port)
        yield Topology(f"http://127.0.0.1:{port}", gateways)


def test_a_response_is_continued_by_the_other_replica(replicas: Topology, scripted: ScriptedBackend) -> None:
    one, two = (each.base for each in replicas.gateways)
    body = {"model": "openai/m", "input": "hi"}
    first = httpx.post(f"{one}/v1/responses", json=body, headers=KEY, trust_env=False).json()
    body = {**body, "input": "and?", "previous_response_id": first["id"]}
    reply = httpx.post(f"{two}/v1/responses", json=body, headers=KEY, trust_env=False)
    assert reply.status_code == 200, reply.text
    assert "and?" in str(scripted.bodies()[-1])
    assert "hi" in str(scripted.bodies()[-1])


def test_a_web_socket_comes_through_nginx(replicas: Topology) -> None:
    address = replicas.url.replace("http", "ws", 1)
    origin = replicas.url  # a page that nginx itself might have served
    with connect(f"{address}/v1/responses", additional_headers=KEY, origin=origin) as socket:  # type: ignore[arg-type]
        socket.send(orjson.dumps({"type": "response.create", "model": "openai/m", "input": "hi"}).decode())
        kinds = []
        while "response.completed" not in kinds:
            kinds.append(orjson.loads(socket.recv(timeout=15))["type"])
    assert kinds[0] == "response.created"


def test_the_service_names_its_database() -> None:
    for name in NAMES:
        assert told(name)["DRAGOMAN_DATABASE_URL"].endswith("@postgres/dragoman")
    assert "DRAGOMAN_DATABASE_URL" not in told("dragoman")
