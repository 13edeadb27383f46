"""Pictures made smaller where a request exceeds its backend's limit, from the client to the backend."""

from __future__ import annotations

import base64
import io
import os
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from PIL import Image

from app import downscale
from app.downscale import STEPS, Shrinking
from tests.app.conftest import Serve
from tests.backends.scripted import ScriptedBackend

MIB = 1 << 20
ROUTES = {"chat": "/v1/chat/completions", "responses": "/v1/responses"}


def written(picture: Image.Image, format: str = "PNG", **options: Any) -> str:
    out = io.BytesIO()
    picture.save(out, format, **options)
    return f"data:image/{format.lower()};base64,{base64.b64encode(out.getvalue()).decode()}"


def noise(width: int, height: int, mode: str = "RGB") -> Image.Image:
    """What no format packs well."""
    return Image.frombytes(mode, (width, height), os.urandom(width * height * len(mode)))


def read(url: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))


def shrunk(*sources: str, spare: int = 0) -> dict[str, Any]:
    """As small as every step makes them, or until `spare` bytes are saved."""
    size = sum(map(len, sources))
    places = {source: [f"/messages/0/content/{i}"] for i, source in enumerate(sources)}
    return Shrinking(places, size, size - spare if spare else 0).run()


# --- pictures --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "size"), list(enumerate([(2048, 1024), (1536, 768), (1024, 512), (768, 384)]))
)
def test_the_steps_go_down_until_it_fits(step: int, size: tuple[int, int]) -> None:
    source = written(noise(2600, 1300))
    before = [shrunk(source, spare=1)]
    for _ in STEPS[: step + 1]:
        before.append(shrunk(source, spare=len(source) - len(before[-1][source].url) + 1))
    found = before[step][source]
    assert (found.was, found.now) == ((2600, 1300), size)
    assert read(found.url).size == size
    assert read(found.url).format == "JPEG"


def test_the_largest_goes_first_and_the_rest_stays() -> None:
    small, large = written(noise(400, 400)), written(noise(900, 900))
    assert list(shrunk(small, large, spare=1000)) == [large]
    assert list(shrunk(small, large)) == [large, small]


def test_a_picture_in_several_places_saves_in_each() -> None:
    source, other = written(noise(900, 900)), written(noise(700, 700))
    places = {source: ["/a", "/b", "/c"], other: ["/d"]}
    size = 3 * len(source) + len(other)
    assert list(Shrinking(places, size, size - 2 * len(source)).run()) == [source]


def test_what_is_see_through_becomes_white() -> None:
    picture = noise(300, 300, "RGBA")
    picture.paste((0, 0, 0, 0), (0, 0, 100, 100))
    palette = Image.new("P", (300, 300), 1)
    palette.putpalette([0, 0, 0, 200, 0, 0] + [0, 0, 0] * 254)
    palette.paste(0, (0, 0, 100, 100))
    for x in range(100, 300):  # noise, or there would be nothing to gain
        palette.putpixel((x, x), 0)
    source = written(picture)
    assert min(read(shrunk(source)[source].url).getpixel((50, 50))) > 240  # type: ignore[type-var]
    flat = downscale._flat(read(written(palette, transparency=0)))
    assert flat is not None
    assert flat.getpixel((50, 50)) == (255, 255, 255)


def test_a_cameras_rotation_is_kept() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    source = written(noise(900, 500), "JPEG", quality=98, exif=exif)
    found = shrunk(source)[source]
    assert (found.was, found.now) == ((500, 900), (427, 768))


def cut(url: str) -> str:
    return url[: len(url) // 2 // 4 * 4]


ANIMATED = written(noise(300, 300), "GIF", save_all=True, append_images=[noise(300, 300)])
UNTOUCHED = {
    "animated": ANIMATED,
    "no image": f"data:image/png;base64,{base64.b64encode(os.urandom(90_000)).decode()}",
    "cut": cut(written(noise(300, 300))),
    "no base64": "data:image/svg+xml,<svg/>" + "x" * 10_000,
    "bad base64": "data:image/png;base64," + "?" * 10_000,
    "of no known format": written(noise(300, 300), "TIFF"),
    "16 bits a pixel": written(noise(300, 300).convert("L").convert("I").convert("I;16")),
    "small as it is": written(Image.new("RGB", (700, 700))),
}


@pytest.mark.parametrize("source", UNTOUCHED.values(), ids=UNTOUCHED)
def test_what_cannot_be_made_smaller_stays(source: str) -> None:
    assert shrunk(source) == {}


def test_a_bomb_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    source = written(noise(300, 300))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 60_000)  # Pillow warns
    assert shrunk(source) == {}
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 30_000)  # Pillow raises
    assert shrunk(source) == {}


def test_one_request_decodes_only_so_much(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [written(noise(300 + i, 300)) for i in range(5)]
    monkeypatch.setattr(downscale, "MAX_PIXELS", 200_000)
    assert len(shrunk(*sources)) == 2


# --- requests --------------------------------------------------------------------------


def databricks(backend: ScriptedBackend, **request: Any) -> dict[str, Any]:
    account = {"name": "d", "kind": "databricks", "base_url": backend.origin, "api_key": "k"}
    return {**account, "models": ["databricks-claude-sonnet-4-5"], "overrides": {"request": request}}


def asking(shape: str, *urls: str) -> dict[str, Any]:
    model = "d/databricks-claude-sonnet-4-5"
    if shape == "chat":
        parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
        return {"model": model, "messages": [{"role": "user", "content": parts}]}
    parts = [{"type": "input_image", "image_url": url} for url in urls]
    return {"model": model, "input": [{"role": "user", "content": parts}]}


def part(shape: str, at: int) -> str:
    return f"/{'messages' if shape == 'chat' else 'input'}/0/content/{at}"


@pytest.mark.parametrize("shape", ROUTES)
def test_garbage_of_40_mib_is_a_413_and_goes_nowhere(
    serve: Serve, scripted: ScriptedBackend, shape: str
) -> None:
    garbage = f"data:image/png;base64,{base64.b64encode(os.urandom(30 * MIB)).decode()}"
    with serve(providers=[databricks(scripted)]).client() as client:
        reply = client.post(ROUTES[shape], json=asking(shape, garbage))
    assert (reply.status_code, reply.json()["error"]["code"]) == (413, "request_too_large")
    assert "40.0 MiB" in reply.json()["error"]["message"]
    assert "32.0 MiB" in reply.json()["error"]["message"]
    assert scripted.requests == []


@pytest.mark.parametrize("wire", ["chat", "responses"])
@pytest.mark.parametrize("shape", ROUTES)
def test_a_large_picture_is_made_smaller_and_served(
    serve: Serve, scripted: ScriptedBackend, shape: str, wire: str
) -> None:
    small, large = written(noise(40, 40)), written(noise(1400, 700))
    account = {"name": "d", "kind": "openai", "base_url": f"{scripted.origin}/v1", "wire": wire}
    account |= {"models": ["databricks-claude-sonnet-4-5"]}
    account |= {"overrides": {"request": {"max_body_bytes": 3_500_000}}}
    with serve(providers=[account]).client() as client:
        reply = client.post(ROUTES[shape], json=asking(shape, small, large))
    assert reply.status_code == 200, reply.text
    assert reply.headers["x-dragoman-dropped"] == part(shape, 1)
    body = scripted.bodies()[-1]
    kept, made = (body.get("messages") or body["input"])[0]["content"]
    kept, made = (each["image_url"] for each in (kept, made))
    kept, made = (each["url"] if wire == "chat" else each for each in (kept, made))
    assert kept == small
    assert (read(made).format, read(made).size) == ("JPEG", (1400, 700))
    assert body["model"] == "databricks-claude-sonnet-4-5"


def test_nothing_is_touched_under_the_target_or_for_a_strict_client(
    serve: Serve, scripted: ScriptedBackend
) -> None:
    source = written(noise(700, 700))
    ask = asking("chat", source)
    size = len(orjson.dumps(ask)) + 1000
    with serve(providers=[databricks(scripted, max_body_bytes=size * 32 // 30)]).client() as client:
        assert client.post(ROUTES["chat"], json=ask).headers.get("x-dragoman-dropped") is None
        assert source in str(scripted.bodies()[-1])
    strict = {"x-dragoman-strict": "true"}
    with serve(providers=[databricks(scripted, max_body_bytes=size // 2)]).client() as client:
        reply = client.post(ROUTES["chat"], json=ask, headers=strict)
        assert (reply.status_code, len(scripted.requests)) == (413, 1)
        assert client.post(ROUTES["chat"], json=ask).headers["x-dragoman-dropped"] == part("chat", 0)


@pytest.mark.parametrize(("ask", "named"), [(asking("chat", ANIMATED), True), (asking("chat"), False)])
def test_without_pillow_the_413_names_the_extra(
    serve: Serve, scripted: ScriptedBackend, monkeypatch: pytest.MonkeyPatch, ask: Any, named: bool
) -> None:
    monkeypatch.setattr(downscale, "AVAILABLE", False)
    ask["messages"].append({"role": "user", "content": "x" * 200_000})
    with serve(providers=[databricks(scripted, max_body_bytes=200_000)]).client() as client:
        reply = client.post(ROUTES["chat"], json=ask)
    assert reply.status_code == 413
    assert ("its extra `images`" in reply.json()["error"]["message"]) is named
    assert scripted.requests == []


def test_the_loss_names_the_address_of_a_fetched_picture() -> None:
    data, url = "data:image/png;base64,AA==", "https://h.example/a.png"
    request: Any = SimpleNamespace(body=asking("chat", "https://h.example/b.png", url), images={url: data})
    plan: Any = SimpleNamespace(request=request)
    assert downscale._own_places(plan, data) == [part("chat", 1)]
    request.body = asking("chat", data)
    assert downscale._own_places(plan, data) == [part("chat", 0)]
