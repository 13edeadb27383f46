"""Fetch a model folder from a hub that speaks Hugging Face's HTTP interface.

Two routes are enough: `GET /api/models/{id}/revision/{revision}?blobs=true` lists the files with
their sizes and, for large ones, their SHA-256; `GET /{id}/resolve/{revision}/{file}` gives one,
often by a redirect to a store elsewhere. A file grows as `NAME.part` and gets its name when it is
whole and right, so that a folder never holds half a file under a name that is run.
"""

from __future__ import annotations

import errno
import hashlib
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import httpx

from .pull_choice import choose_files

PUBLIC_HUB = "https://huggingface.co"
TRIES = 5
"""Connections for one file; each goes on where the one before it broke."""
_TIMEOUT = httpx.Timeout(60.0, connect=10.0)
_ID = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_TOKEN = re.compile(r"[!-~]+")


class NotPulledError(Exception):
    """Why nothing, or not all, was fetched, in words for the one who asked for it."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file as the hub lists it; `size` in bytes. What the hub does not tell is None."""

    name: str
    size: int | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a model at one commit."""

    model: str
    commit: str
    files: Mapping[str, RemoteFile]


Watch = Callable[[RemoteFile, int], None]
"""Told how many bytes of a file are here: when it begins, with each piece, at its end."""


class Hub:
    """A hub and the one who asks; use it as a context manager."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """`HF_ENDPOINT` names the hub, `HF_TOKEN` the one who asks. Raises `NotPulledError`."""
        endpoint = (environ.get("HF_ENDPOINT") or PUBLIC_HUB).rstrip("/")
        token = environ.get("HF_TOKEN", "").strip()
        self._host = _host(endpoint)
        # What HTTP cannot carry would come back in the error of the library, in plain.
        if token and not _TOKEN.fullmatch(token):
            raise NotPulledError("HF_TOKEN holds characters that no token has")
        self._endpoint = endpoint
        # httpx leaves `authorization` out of a redirect to another origin: the store's own
        # address is signed, and the token is the hub's business alone.
        headers = {"accept-encoding": "identity"} | ({"authorization": f"Bearer {token}"} if token else {})
        self._signed = bool(token)
        self._client = httpx.Client(headers=headers, timeout=_TIMEOUT, follow_redirects=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def list_files(self, model: str, revision: str) -> Listing:
        """Raises `NotPulledError`."""
        if not _ID.fullmatch(model) or ".." in model:
            raise NotPulledError(f"'{model}' is no model id: it looks like org/name")
        url = f"{self._endpoint}/api/models/{model}/revision/{quote(revision, safe='')}"
        try:
            answer = self._client.get(url, params={"blobs": "true"})
            self._check(answer, f"{model}, revision {revision}")
            return _listing(model, revision, answer.json())
        except httpx.HTTPError as error:
            raise NotPulledError(f"{self._host} cannot be asked: {error}") from error
        except ValueError as error:
            raise NotPulledError(f"{self._host} gave no list of files: is it such a hub?") from error

    def fetch(self, listing: Listing, file: RemoteFile, folder: Path, watch: Watch) -> None:
        """One file into its place. Raises `NotPulledError`, `OSError`."""
        place = folder / file.name
        if _is_right(place, file):
            watch(file, place.stat().st_size)
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_name(place.name + ".part")
        # Without its checksum nobody would notice a file put together of two versions.
        if file.sha256 is None or (file.size is not None and _size(part) > file.size):
            part.unlink(missing_ok=True)
        self._fill(listing, file, part, watch)
        _check_part(part, file)
        part.replace(place)

    def _fill(self, listing: Listing, file: RemoteFile, part: Path, watch: Watch) -> None:
        """Until the part is as long as the file. Raises `NotPulledError`, `OSError`."""
        path = f"{quote(listing.commit, safe='')}/{quote(file.name)}"
        url = f"{self._endpoint}/{listing.model}/resolve/{path}"
        for left in reversed(range(TRIES)):
            have = _size(part) if file.sha256 else 0
            watch(file, have)
            if have and have == file.size:
                return
            try:
                self._stream(url, file, part, have, watch)
                return
            except httpx.HTTPError as error:
                if not left:
                    kept = "; what is here is kept, pull again to go on" if file.sha256 else ""
                    raise NotPulledError(f"{file.name}: the connection broke: {error}{kept}") from error

    def _stream(self, url: str, file: RemoteFile, part: Path, have: int, watch: Watch) -> None:
        headers = {"range": f"bytes={have}-"} if have else {}
        with self._client.stream("GET", url, headers=headers) as answer:
            if answer.status_code == 416:
                part.unlink()
                raise NotPulledError(f"{file.name}: the hub's file is shorter than its list says; pull again")
            self._check(answer, file.name)
            done = have if answer.status_code == 206 and _starts_at(answer, have) else 0
            with part.open("r+b" if done else "wb") as out:
                out.seek(done)
                for piece in answer.iter_bytes():
                    out.write(piece)
                    done += len(piece)
                    watch(file, done)
                    if file.size is not None and done > file.size:
                        break

    def _check(self, answer: httpx.Response, asked: str) -> None:
        status = answer.status_code
        if status < 300:
            return
        # The public hub says 401 for what does not exist as well, to those it does not know.
        if status == 401 and not self._signed:
            reason = "it is gated or private, or does not exist; accept its terms there and set HF_TOKEN"
        elif status in (401, 403):
            reason = "HF_TOKEN is not allowed to read it; accept the model's terms at the hub with its owner"
        elif status == 404:
            reason = "the hub has no such model, revision or file"
        else:
            reason = "try again later"
        raise NotPulledError(f"{asked}: {status} from {answer.url.host}: {reason}")


def pull(hub: Hub, model: str, revision: str, folder: Path, variant: str | None, watch: Watch) -> list[str]:
    """A model into `folder`; the names of its files, sorted.

    Raises `NotPulledError`, `NotChosenError`; what was fetched until then stays, and is used by
    the next try.
    """
    listing = hub.list_files(model, revision)
    names = choose_files(list(listing.files), variant)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _check_room(folder, [listing.files[name] for name in names])
        for name in names:
            hub.fetch(listing, listing.files[name], folder, watch)
    except OSError as error:
        full = "; free some space and pull again to go on" if error.errno == errno.ENOSPC else ""
        raise NotPulledError(f"{error.filename or folder}: {error.strerror}{full}") from error
    return names


def _check_room(folder: Path, files: list[RemoteFile]) -> None:
    """Better told before gigabytes than after them."""
    missing = sum(
        (file.size or 0) - _size(folder / f"{file.name}.part")
        for file in files
        if _size(folder / file.name) != file.size
    )
    free = shutil.disk_usage(folder).free
    if missing > free:
        raise NotPulledError(f"{folder}: {missing:,} bytes are needed, {free:,} are free")


def _host(endpoint: str) -> str:
    """What may be shown of the address: it may hold a password. Raises `NotPulledError`."""
    try:
        url = httpx.URL(endpoint)
    except httpx.InvalidURL:
        url = httpx.URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise NotPulledError("HF_ENDPOINT is no address: it begins with https://")
    return url.host


def _listing(model: str, revision: str, told: Any) -> Listing:
    """Raises `ValueError` for anything but a list of files."""
    siblings = told.get("siblings") if isinstance(told, dict) else None
    if not isinstance(siblings, list) or not all(isinstance(each, dict) for each in siblings):
        raise ValueError("no siblings")
    # All files of one commit, even when the branch moves meanwhile.
    commit = told.get("sha")
    at = commit if isinstance(commit, str) and _COMMIT.fullmatch(commit) else revision
    return Listing(model, at, {file.name: file for file in map(_remote, siblings)})


def _remote(sibling: Mapping[str, Any]) -> RemoteFile:
    name, size, lfs = sibling.get("rfilename"), sibling.get("size"), sibling.get("lfs")
    if not isinstance(name, str):
        raise ValueError("a file without a name")
    told = lfs if isinstance(lfs, dict) else {}
    sha256 = told.get("sha256") or told.get("oid")
    size = told.get("size", size)
    return RemoteFile(
        name,
        size if isinstance(size, int) and size >= 0 else None,
        sha256 if isinstance(sha256, str) and _SHA256.fullmatch(sha256) else None,
    )


def _starts_at(answer: httpx.Response, start: int) -> bool:
    told: str = answer.headers.get("content-range", "")
    return told.startswith(f"bytes {start}-")


def _size(path: Path) -> int:
    """0 where there is no file."""
    return path.stat().st_size if path.is_file() else 0


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_right(place: Path, file: RemoteFile) -> bool:
    """Whether the file is here already, which only its checksum can tell."""
    if file.sha256 is None or not place.is_file() or file.size not in (None, _size(place)):
        return False
    return _digest(place) == file.sha256


def _check_part(part: Path, file: RemoteFile) -> None:
    size = _size(part)
    if file.size is not None and size != file.size:
        part.unlink()
        raise NotPulledError(f"{file.name}: it has {size:,} bytes instead of {file.size:,}; it was removed")
    if file.sha256 is not None and _digest(part) != file.sha256:
        part.unlink()
        raise NotPulledError(f"{file.name}: its checksum is wrong; it was removed, pull again")
