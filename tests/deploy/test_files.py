"""What containers are made and run by: valid, and of one mind with each other and with the code."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.cli.configuration import CONFIG_ERROR
from app.server import LAST_WORDS_S
from config.environment import substitute
from config.load import parse
from config.schema import Server
from deploy import healthcheck
from providers.profiles import BY_NAME
from tests.conftest import StartGateway
from tests.deploy.dockerfile import ROOT, read
from tests.deploy.scratch_root import context

MANIFESTS = sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml"))
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
BIN = Path(sys.executable).parent
OLDEST_KUBERNETES = "1.30"
UNIT = (ROOT / "deploy" / "dragoman.service").read_text()
REPLICAS = ("replica-1", "replica-2")
GATEWAY_SERVICES = ("dragoman", *REPLICAS)


def check(*argv: str) -> None:
    done = subprocess.run([str(BIN / argv[0]), *argv[1:]], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text()))


def pod(path: Path) -> dict[str, Any]:
    (found,) = (each for each in documents(path) if each["kind"] == "Deployment")
    return found["spec"]["template"]["spec"]


def gateway(path: Path) -> dict[str, Any]:
    """The container of ours, wherever in the pod it is."""
    every = [*pod(path).get("initContainers", []), *pod(path)["containers"]]
    (found,) = (each for each in every if each["name"] == "dragoman")
    return found


def configured(path: Path) -> str:
    (found,) = (each for each in documents(path) if each["kind"] == "ConfigMap")
    return found["data"]["dragoman.toml"]


each_manifest = pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)


def test_the_dockerfile_passes_hadolint() -> None:
    check("hadolint", "--failure-threshold", "info", "Dockerfile")


def test_the_compose_file_follows_its_schema() -> None:
    check("check-jsonschema", "--builtin-schema", "vendor.compose-spec", "docker-compose.yml")


@pytest.mark.parametrize("version", [OLDEST_KUBERNETES, "1.37"])
def test_the_manifests_follow_the_schemas_of_kubernetes(version: str) -> None:
    check("kubernetes-validate", "-k", version, "--strict", *map(str, MANIFESTS))


@pytest.mark.skipif(shutil.which("nginx") is None, reason="needs nginx")
def test_nginx_takes_its_configuration(tmp_path: Path) -> None:
    """Names of other containers mean nothing here: this machine stands for them."""
    text = (ROOT / "deploy" / "nginx.conf").read_text()
    for name in REPLICAS:
        text = text.replace(f"server {name}:", "server 127.0.0.1:")
    file = tmp_path / "nginx.conf"
    file.write_text(text.replace("/tmp/", f"{tmp_path}/"))
    done = subprocess.run(["nginx", "-t", "-c", str(file)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "warn" not in done.stderr


def test_the_last_stage_has_no_compiler_and_is_nobody_s_root() -> None:
    *_, last = read()
    steps = " ".join(step.rest for step in last.steps if step.name == "RUN")
    assert "apt-get" not in steps
    assert "pip install" not in steps
    assert last.only("USER").rest == "10001:10001"
    assert "curl" not in last.only("HEALTHCHECK").rest


def test_the_environments_and_keys_of_a_developer_stay_out_of_the_image() -> None:
    folders = {path.partition("/")[0] for path in context()}
    files = {"pyproject.toml", "README.md", "LICENSE", "Dockerfile", ".dockerignore"}  # the last two always
    assert folders == {*files, "app", "config", "deploy", "providers", "translators"}
    assert [path for path in context() if path.startswith("deploy/")] == ["deploy/healthcheck.py"]
    assert not [path for path in context() if path.endswith(".pyc")]


def test_everything_the_wheel_is_made_of_is_copied() -> None:
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())
    built, *_ = read()
    copied = {word for step in built.steps if step.name == "COPY" for word in step.words()[:-1]}
    assert copied >= set(packages["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])


@each_manifest
def test_a_manifest_s_configuration_is_valid_with_its_own_variables(path: Path) -> None:
    names = {each["name"]: "v" for each in gateway(path)["env"]}
    config = parse(configured(path), names, BY_NAME)
    assert config.providers
    problems: list[Any] = []
    substitute(tomllib.loads(configured(path)), dict.fromkeys(names, "v"), problems)
    assert not problems


@each_manifest
def test_a_manifest_holds_no_secret(path: Path) -> None:
    assert not [each for each in documents(path) if each["kind"] == "Secret"]
    assert all("secretKeyRef" in each["valueFrom"] for each in gateway(path)["env"])


@each_manifest
def test_a_pod_has_no_rights(path: Path) -> None:
    told = {**pod(path).get("securityContext", {}), **gateway(path)["securityContext"]}
    assert told["runAsNonRoot"]
    assert told["readOnlyRootFilesystem"]
    assert not told["allowPrivilegeEscalation"]
    assert told["capabilities"] == {"drop": ["ALL"]}
    assert told["seccompProfile"] == {"type": "RuntimeDefault"}
    *_, last = read()
    assert f"{told['runAsUser']}:{told['runAsGroup']}" == last.only("USER").rest
    assert not pod(path)["automountServiceAccountToken"]


@each_manifest
def test_a_pod_is_given_the_time_that_open_answers_have(path: Path) -> None:
    grace = parse(configured(path), dict.fromkeys(_names(path), "v"), BY_NAME).server.shutdown_grace_s
    before = gateway(path).get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
    assert pod(path)["terminationGracePeriodSeconds"] >= before + grace + LAST_WORDS_S


def _names(path: Path) -> list[str]:
    return [each["name"] for each in gateway(path)["env"]]


@each_manifest
def test_the_configuration_is_mounted_as_a_folder_where_it_is_looked_for(path: Path) -> None:
    """A subPath would not follow the ConfigMap."""
    *_, last = read()
    mounts = {each["mountPath"]: each for each in gateway(path)["volumeMounts"]}
    assert "subPath" not in mounts[last.only("WORKDIR").rest]
    assert set(mounts) == {last.only("WORKDIR").rest, last.only("VOLUME").rest, "/tmp"}


@each_manifest
def test_the_probes_ask_what_they_are_for(path: Path) -> None:
    ours = gateway(path)
    readiness = ours.get("readinessProbe", ours["startupProbe"])
    assert _asked(ours["livenessProbe"]) == "/health"
    assert _asked(readiness) == "/ready"


def _asked(probe: dict[str, Any]) -> str:
    return probe["httpGet"]["path"] if "httpGet" in probe else probe["exec"]["command"][-1]


def test_a_sidecar_that_asks_for_no_key_listens_on_loopback_only() -> None:
    (path,) = (each for each in MANIFESTS if each.stem == "sidecar")
    server = parse(configured(path), dict.fromkeys(_names(path), "v"), BY_NAME).server
    assert not server.api_keys
    assert server.host == "127.0.0.1"
    assert gateway(path)["args"][1:3] == ["--host", "127.0.0.1"]
    assert gateway(path)["restartPolicy"] == "Always"


def test_the_replicas_of_a_deployment_open_each_other_s_capsules() -> None:
    (path,) = (each for each in MANIFESTS if each.stem == "deployment")
    assert parse(configured(path), dict.fromkeys(_names(path), "v"), BY_NAME).server.seal_key is not None


def test_the_compose_file_s_profiles() -> None:
    active = {name: each.get("profiles", []) for name, each in COMPOSE["services"].items()}
    replicas = {name: ["replicas"] for name in ("postgres", *REPLICAS, "nginx")}
    assert active == {"dragoman": [], "ollama": ["ollama"], **replicas}


@pytest.mark.parametrize("name", [*GATEWAY_SERVICES, "nginx"])
def test_a_service_has_no_rights(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


@pytest.mark.parametrize("name", GATEWAY_SERVICES)
def test_a_service_is_given_the_time_that_open_answers_have(name: str) -> None:
    given = int(COMPOSE["services"][name]["stop_grace_period"].removesuffix("s"))
    assert given >= Server().shutdown_grace_s + LAST_WORDS_S


def test_the_gateways_of_the_compose_file_share_their_state() -> None:
    *_, last = read()
    shared = {f"state:{last.only('VOLUME').rest}"}
    for name in GATEWAY_SERVICES:
        assert shared <= set(COMPOSE["services"][name]["volumes"])


def test_nginx_knows_every_gateway_of_the_compose_file_and_as_large_a_body() -> None:
    text = (ROOT / "deploy" / "nginx.conf").read_text()
    assert all(f"server {name}:4000 " in text for name in REPLICAS)
    assert f"client_max_body_size {Server().max_body_bytes // 2**20}m;" in text


def test_the_health_check_goes_by_the_answer(start_gateway: StartGateway) -> None:
    port = start_gateway([]).base.rpartition(":")[2]
    assert healthcheck.healthy("/health", port)
    assert not healthcheck.healthy("/ready", port), "no provider"
    assert not healthcheck.healthy("/health", "1")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_takes_its_unit(tmp_path: Path) -> None:
    """The command is not installed in its place here: a program that is stands for it."""
    file = tmp_path / "dragoman.service"
    file.write_text(UNIT.replace("/opt/dragoman/bin/dragoman", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(file)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "dragoman.service" not in done.stderr, done.stderr


def test_the_unit_is_given_the_time_that_open_answers_have() -> None:
    told = dict(line.split("=", 1) for line in UNIT.splitlines() if "=" in line and not line.startswith("#"))
    assert int(told["TimeoutStopSec"]) >= Server().shutdown_grace_s + LAST_WORDS_S
    assert told["RestartPreventExitStatus"] == str(CONFIG_ERROR)
    assert told["User"] != "root"
