"""A real third-party backend: llama.cpp's own server, in a process of its own, with our tiny model.

python -m tests.backends.llamacpp PORT
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Self

import httpx

ROOT = Path(__file__).resolve().parents[2]
WEIGHTS = ROOT / "tests/models/tiny-chat.gguf"
MODEL = "tiny"
_START_S = 30.0


class LlamaServer:
    """Chat and Responses under `{origin}/v1`; use it as a context manager."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        # llama.cpp writes a page of facts about the model; nobody reads them.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.backends.llamacpp", str(self._port)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            self._wait_until_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(10)

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                if httpx.get(f"{self.origin}/health", trust_env=False, timeout=2).status_code == 200:
                    return
            except httpx.HTTPError:
                pass
            time.sleep(0.05)
        raise RuntimeError("llama.cpp's server did not start")


def serve(port: int) -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(WEIGHTS)
    params.n_ctx, params.n_parallel = 4096, 1
    params.cpuparams.n_threads = 1
    params.hostnames, params.port = ["127.0.0.1"], port
    # Greedy, whatever a client asks for or not: the same answers every time.
    params.sampling.temp = 0.0
    # The chat template of the model file, which has the tools in it.
    params.use_jinja, params.model_alias = True, {MODEL}
    server = xllamacpp.Server(params)
    print(f"llama.cpp on {server.listening_address}", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    serve(int(sys.argv[1]))
