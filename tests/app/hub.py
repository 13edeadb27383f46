"""A hub on loopback with Hugging Face's two routes, and the command that pulls from it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import orjson
from typer.testing import CliRunner, Result

from app.cli.main import cli
from tests.backends.loopback import Loopback, OnLoopback, Reply, Request

COMMIT = "c0ffee" + "0" * 34
MODEL = "some-org/tiny-chat"


def sibling(name: str, body: bytes) -> dict[str, Any]:
    """As `?blobs=true` lists a file: all are large here, so that all have a checksum."""
    sha256 = hashlib.sha256(body).hexdigest()
    lfs = {"sha256": sha256, "size": len(body), "pointerSize": 130}
    return {"rfilename": name, "size": len(body), "blobId": "0" * 40, "lfs": lfs}


@dataclass
class Hub(OnLoopback):
    """Serves `files`; `odd` may answer a request in its place."""

    files: Mapping[str, bytes]
    odd: Callable[[Request], Reply | None] = lambda _: None
    siblings: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.server = Loopback(self.answer)
        self.siblings = self.siblings or [sibling(*each) for each in self.files.items()]

    def answer(self, request: Request) -> Reply:
        if (odd := self.odd(request)) is not None:
            return odd
        path, _, query = request.path.partition("?")
        if path == f"/api/models/{MODEL}/revision/main" and query == "blobs=true":
            return whole(orjson.dumps({"id": MODEL, "sha": COMMIT, "siblings": self.siblings}))
        body = self.files.get(unquote(path.removeprefix(f"/{MODEL}/resolve/{COMMIT}/")))
        return status(404) if body is None else ranged(request, body)

    def fetched(self) -> list[str]:
        """What was asked for, in order, without the list."""
        return [
            each.path.rpartition(COMMIT + "/")[2] for each in self.server.requests if "/resolve/" in each.path
        ]

    def pull(self, home: Path, *arguments: str, model: str = MODEL, **environ: str) -> Result:
        bare = {
            "HF_ENDPOINT": self.origin,
            "HF_TOKEN": "",
            "XDG_DATA_HOME": str(home),
            "NO_PROXY": "127.0.0.1",
        }
        return CliRunner().invoke(cli, ["pull", model, *arguments], env=bare | environ)


def whole(body: bytes) -> Reply:
    return Reply(headers={"content-length": str(len(body))}, pieces=[body])


def status(code: int, **headers: str) -> Reply:
    return Reply(code, {"content-length": "0", **headers})


def ranged(request: Request, body: bytes) -> Reply:
    asked = request.headers.get("range")
    if asked is None:
        return whole(body)
    start = int(asked.removeprefix("bytes=").removesuffix("-"))
    rest = body[start:]
    place = f"bytes {start}-{len(body) - 1}/{len(body)}"
    return Reply(206, {"content-length": str(len(rest)), "content-range": place}, [rest])


def cut(body: bytes, after: int) -> Reply:
    return Reply(headers={"content-length": str(len(body))}, pieces=[body[:after], 0.05], end="cut")
