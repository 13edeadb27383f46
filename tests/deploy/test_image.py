"""The image, built and run without an engine (scratch_root.py). Slow: `make test-image`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.deploy.dockerfile import Stage, read
from tests.deploy.scratch_root import Root, build, container_argv, missing

WANTED = "DRAGOMAN_TEST_IMAGE"

pytestmark = [
    pytest.mark.skipif(not os.environ.get(WANTED), reason="minutes, and a package index: make test-image"),
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
    pytest.mark.timeout(900),
]

EXTRAS = {"": [], "onnx,databricks,images": ["onnxruntime_genai", "databricks.sdk", "PIL"]}
STATE = "/var/lib/dragoman"
KEY = {"DRAGOMAN_API_KEY": "k-test"}

ASK = """
import http.client, json, sys
method, path, body = sys.argv[1:]
connection = http.client.HTTPConnection("127.0.0.1", 4000, timeout=60)
connection.request(method, path, body or None, {"authorization": "Bearer k-test"})
reply = connection.getresponse()
print(json.dumps([reply.status, reply.read().decode()]))
"""


class Image:
    """The last stage's root, made read-only, with what the Dockerfile says of running it."""

    def __init__(self, root: Root, stage: Stage, extras: str) -> None:
        self.root, self.extras = root, extras
        self.user = stage.only("USER").rest
        self.command = [*stage.only("ENTRYPOINT").words(), *stage.only("CMD").words()]
        self.health = json.loads(stage.only("HEALTHCHECK").rest.removeprefix("CMD "))
        (self.volume,) = stage.only("VOLUME").words()

    def freeze(self) -> None:
        """What an engine does for a read-only container: its volume alone can be written to."""
        path = self.root.path
        for name in ("state", "config", "no-tmp"):
            self.root.do("mkdir", f"{path}/layers/{name}")
        # A new volume gets the owner and the mode of the folder it covers.
        self.root.do("chown", f"--reference={path}{self.volume}", f"{path}/layers/state")
        self.root.do("chmod", f"--reference={path}{self.volume}", f"{path}/layers/state")
        self.root.do("mount", "--bind", f"{path}/layers/state", f"{path}{self.volume}")
        self.root.do("mount", "--bind", f"{path}/layers/config", f"{path}{self.root.cwd}")
        self.root.do("mount", "-t", "tmpfs", "-o", "ro", "none", f"{path}/tmp")
        for mount in ("", "/etc", "/usr/local", self.root.cwd):
            self.root.do("mount", "-o", "remount,bind,ro", f"{path}{mount}")

    def write(self, place: str, text: str) -> None:
        """A file of the host's that is mounted into the container."""
        subprocess.run(self.root.outside("tee", f"{self.root.path}/layers/{place}"), input=text.encode())


class Container:
    """One run of the image."""

    def __init__(
        self, image: Image, process: subprocess.Popen[bytes], log: Path, env: Mapping[str, str]
    ) -> None:
        self.image, self.process, self._log, self._env = image, process, log, env

    @property
    def pid(self) -> int:
        """Of its process 1, as this machine counts."""
        found = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(found[0])

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def exec(self, *command: str) -> subprocess.CompletedProcess[str]:
        uid, _, gid = self.image.user.partition(":")
        enter = [
            "nsenter",
            f"--target={self.pid}",
            "--mount",
            "--net",
            "--pid",
            "--root",
            f"--wd=/proc/{self.pid}/cwd",
        ]
        drop = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", "--bounding-set=-all"]
        argv = [*enter, *drop, "--inh-caps=-all", "--", *command]
        return subprocess.run(argv, env=dict(self._env), capture_output=True, text=True, timeout=90)

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, str]:
        done = self.exec("python", "-I", "-c", ASK, method, path, "" if body is None else json.dumps(body))
        assert done.returncode == 0, done.stderr + self.log()[-4000:]
        status, text = json.loads(done.stdout)
        return status, text

    def healthy(self) -> bool:
        return self.exec(*self.image.health).returncode == 0

    def stop(self) -> int:
        os.kill(self.pid, signal.SIGTERM)
        return self.process.wait(20)


@pytest.fixture(scope="module", params=list(EXTRAS), ids=lambda extras: extras or "plain")
def image(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    folder = tmp_path_factory.mktemp("image")
    first, last = read()
    with Root(folder / "build") as before, Root(folder / "final") as root:
        build(first, before, {}, {"EXTRAS": request.param})
        build(last, root, {first.name: before}, {})
        made = Image(root, last, request.param)
        made.freeze()
        yield made


@contextmanager
def run(image: Image, log: Path, *arguments: str, **env: str) -> Iterator[Container]:
    """`docker run --read-only --cap-drop ALL --security-opt no-new-privileges`, until it listens."""
    entry = image.command[:1]
    command = [*entry, *arguments] if arguments else image.command
    environment = {**image.root.env, "HOME": STATE, **env}
    with log.open("wb") as file:
        process = subprocess.Popen(
            container_argv(image.root, image.user, command), env=environment, stdout=file, stderr=file
        )
    container = Container(image, process, log, environment)
    try:
        deadline = time.monotonic() + 60
        while "dragoman listening on" not in container.log() and process.poll() is None:
            assert time.monotonic() < deadline, container.log()
            time.sleep(0.05)
        yield container
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def test_serves_read_only_as_somebody_without_rights(image: Image, tmp_path: Path) -> None:
    with run(image, tmp_path / "log", **KEY, OPENAI_API_KEY="sk-none") as container:
        assert container.healthy()
        assert container.ask("GET", "/ready")[0] == 200
        told = Path(f"/proc/{container.pid}/status").read_text()
        status = dict(line.split(":\t", 1) for line in told.splitlines() if ":\t" in line)
        assert status["Uid"].split() == ["10001"] * 4
        assert status["Gid"].split() == ["10001"] * 4
        assert (status["CapEff"], status["CapBnd"], status["NoNewPrivs"]) == ("0" * 16, "0" * 16, "1")
        for place in ("/x", "/etc/dragoman/x", "/opt/dragoman/x", "/usr/local/x", "/tmp/x"):
            assert "Read-only file system" in container.exec("touch", place).stderr, place
        assert container.exec("touch", f"{STATE}/x").returncode == 0
        assert container.exec("python", "-m", "pip", "--version").returncode != 0


def test_a_signal_reaches_process_1(image: Image, tmp_path: Path) -> None:
    with run(image, tmp_path / "log", **KEY) as container:
        assert container.exec("cat", "/proc/1/comm").stdout.strip() == "dragoman"
        began = time.monotonic()
        assert container.stop() == 0, container.log()
        assert time.monotonic() - began < 5


def test_without_a_key_it_says_what_to_do(image: Image, tmp_path: Path) -> None:
    with run(image, tmp_path / "log") as container:
        assert container.process.wait(10) == 2
        assert "DRAGOMAN_API_KEY" in container.log()


def test_the_health_check_fails_where_nothing_answers(image: Image, tmp_path: Path) -> None:
    with run(image, tmp_path / "log", "serve", "--port", "4001") as container:
        assert not container.healthy()
        assert container.exec(*image.health, "/health", "4001").returncode == 0
        assert container.exec(*image.health, "/no-such", "4001").returncode == 1


@pytest.mark.parametrize(
    ("place", "env"),
    [("config/dragoman.toml", {}), ("state/here.toml", {"DRAGOMAN_CONFIG": f"{STATE}/here.toml"})],
)
def test_a_mounted_configuration_is_found(
    image: Image, tmp_path: Path, place: str, env: dict[str, str]
) -> None:
    provider = 'name = "mounted"\nkind = "openai"\nbase_url = "http://127.0.0.1:9/v1"\nmodels = ["m"]'
    image.write(place, f'[server]\nport = 1\napi_keys = ["${{KEY}}"]\n[[providers]]\n{provider}\n')
    try:
        with run(image, tmp_path / "log", KEY="k-test", **env) as container:
            assert container.healthy(), container.log()
            assert '"mounted/m"' in container.ask("GET", "/v1/models")[1]
            assert container.stop() == 0
    finally:
        image.root.do("rm", f"{image.root.path}/layers/{place}")


def test_several_workers_need_a_folder_for_what_they_share(image: Image, tmp_path: Path) -> None:
    several = [*image.command[1:], "--workers", "2"]
    with run(image, tmp_path / "without", *several, **KEY) as container:
        assert container.process.wait(10) != 0
        assert "No usable temporary directory" in container.log()
    image.root.do("mount", "-t", "tmpfs", "-o", "size=64m,mode=1777", "none", f"{image.root.path}/tmp")
    try:
        with run(image, tmp_path / "log", *several, **KEY) as container:
            assert container.healthy(), container.log()
            assert container.ask("GET", "/metrics")[0] == 200
            assert container.stop() == 0, container.log()
    finally:
        image.root.do("umount", f"{image.root.path}/tmp")


def test_the_extras_are_those_that_were_asked_for(image: Image, tmp_path: Path) -> None:
    with run(image, tmp_path / "log", **KEY) as container:
        for extras, modules in EXTRAS.items():
            for module in modules:
                done = container.exec("python", "-I", "-c", f"import {module}")
                assert (done.returncode == 0) == (extras == image.extras), (module, done.stderr)


def test_the_model_of_the_package_answers(image: Image, tmp_path: Path) -> None:
    if "onnx" not in image.extras:
        pytest.skip("its engine is the extra onnx")
    with run(image, tmp_path / "log", **KEY) as container:
        body = {"model": "embedded/tiny-chat", "input": "Say hello.", "stream": True}
        status, text = container.ask("POST", "/v1/responses", body)
        assert status == 200, text + container.log()
        assert "response.completed" in text
        assert container.stop() == 0, container.log()
