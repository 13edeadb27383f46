"""Pictures made smaller so that a request fits its backend's `request.max_body_bytes`.

Only for a body over 30/32 of that limit: on Databricks, whose 32 MiB are the one limit known, this leaves
room for what a proxy in between may add. The pictures in the body itself (`data:` URLs) are written anew as
JPEG, the largest first, all of them to 2048 pixels before any to 1536, until the body fits. Each one is
told to the client as a loss; a client that wants none (`x-dragoman-strict`) gets the 413 instead.

Needs Pillow (the extra `images`); without it nothing is made smaller, and the 413 says what would.
"""

from __future__ import annotations

import asyncio
import base64
import io
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from providers.extras import is_installed
from translators.dialect import Loss
from translators.images import data_images, remote_images, with_images
from translators.ir import Json

from .payload import write_body
from .plan import Plan, too_large

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

AVAILABLE = is_installed("images")
"""It is an extra, and imported when it is needed: most gateways never meet such a request."""
STEPS = ((2048, 80), (1536, 75), (1024, 70), (768, 65))
"""Longest edge in pixels and JPEG quality."""
MAX_PIXELS = 500_000_000
"""Decoded for one request, some seconds of one core: a small file can hold very many."""
_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
_OPAQUE = frozenset({"1", "L", "RGB", "RGBX", "CMYK", "YCbCr"})
_SEE_THROUGH = frozenset({"P", "PA", "LA", "RGBA"})
_MIB = 1 << 20

_POOL = ThreadPoolExecutor(1, thread_name_prefix="downscale")
"""One request at a time: a picture takes hundreds of MB while it is decoded."""


async def fit_images(plan: Plan) -> None:
    """Write `plan`'s payload with smaller pictures where it is too large; the size is checked elsewhere.

    Raises the 413 (`ProxyError`) that names the extra when only that keeps the request from fitting.
    """
    limit = plan.profile.request.max_body_bytes
    if limit is None or len(plan.payload) <= limit * 30 // 32 or plan.request.strict:
        return
    if AVAILABLE:
        shrink = asyncio.get_running_loop().run_in_executor(_POOL, _shrunk, plan, limit * 30 // 32)
        plan.payload, lost = await shrink
        plan.encoded.losses += lost
    elif len(plan.payload) > limit and data_images(plan.encoded.body):
        raise too_large(plan, "; the gateway makes images smaller itself where its extra `images` is there")


def _shrunk(plan: Plan, target: int) -> tuple[bytes, list[Loss]]:
    """The payload with pictures as small as `target` bytes ask for, and each one's loss."""
    body: Json = orjson.loads(plan.payload)
    places = data_images(body)
    smaller = Shrinking(places, len(plan.payload), target).run()
    if not smaller:
        return plan.payload, []
    urls = {source: picture.url for source, picture in smaller.items()}
    lost = [
        Loss(at, picture.told(len(source)), "content")
        for source, picture in smaller.items()
        for at in _own_places(plan, source) or places[source]
    ]
    return write_body(with_images(body, urls), plan.target.provider), lost


def _own_places(plan: Plan, source: str) -> Sequence[str]:
    """Pointers to the picture in the client's body, which may hold its address only."""
    request = plan.request
    own = data_images(request.body).get(source)
    if own is not None:
        return own
    remote = remote_images(request.body) if request.images else {}
    return [at for url, at in remote.items() if request.images.get(url) == source]


@dataclass(frozen=True, slots=True)
class Smaller:
    """A picture written anew: its `data:` URL and its sizes in pixels, before and now."""

    url: str
    was: tuple[int, int]
    now: tuple[int, int]

    def told(self, size: int) -> str:
        """The loss's reason; `size` is the length of the URL it replaces."""
        before = f"{self.was[0]}x{self.was[1]} ({size / _MIB:.1f} MiB)"
        return f"downscaled from {before} to {self.now[0]}x{self.now[1]} ({len(self.url) / _MIB:.1f} MiB)"


class Shrinking:
    """The pictures of one body on their way to `target` bytes."""

    def __init__(self, places: Mapping[str, Sequence[str]], size: int, target: int) -> None:
        """`places`: each picture's `data:` URL and the pointers to it; `size` of the body now, in bytes."""
        self._places = places
        self._excess = size - target
        self._pixels = MAX_PIXELS
        self._smaller: dict[str, Smaller] = {}

    def run(self) -> dict[str, Smaller]:
        """By the URL each replaces; what cannot be read or would not get smaller is not in it."""
        for edge, quality in STEPS:
            for source in sorted(self._places, key=self._length, reverse=True):
                if self._excess <= 0:
                    return self._smaller
                self._shrink(source, edge, quality)
        return self._smaller

    def _length(self, source: str) -> int:
        known = self._smaller.get(source)
        return len(source if known is None else known.url)

    def _shrink(self, source: str, edge: int, quality: int) -> None:
        found = self._written(source, edge, quality)
        if found is None:
            return
        saved = self._length(source) - len(found.url)
        if saved > 0:
            self._excess -= saved * len(self._places[source])
            self._smaller[source] = found

    def _written(self, source: str, edge: int, quality: int) -> Smaller | None:
        """Always made of the client's own picture: JPEG of JPEG loses twice."""
        from PIL import Image

        try:
            data = base64.b64decode(source.partition(",")[2], validate=True)
            with Image.open(io.BytesIO(data), formats=_FORMATS) as picture:
                return self._resized(picture, edge, quality)
        # Pillow's decoders raise these for broken files; a warning only where warnings are errors.
        except (OSError, ValueError, SyntaxError, EOFError, Warning, Image.DecompressionBombError):
            return None

    def _resized(self, picture: Picture, edge: int, quality: int) -> Smaller | None:
        from PIL import Image, ImageOps

        pixels = picture.width * picture.height
        bomb = Image.MAX_IMAGE_PIXELS is not None and pixels > Image.MAX_IMAGE_PIXELS
        if bomb or pixels > self._pixels or getattr(picture, "is_animated", False):
            return None
        self._pixels -= pixels
        # The rotation that a camera notes beside the picture would not survive.
        flat = _flat(ImageOps.exif_transpose(picture))
        if flat is None:
            return None
        was = flat.size
        flat.thumbnail((edge, edge), Image.Resampling.LANCZOS)
        out = io.BytesIO()
        flat.save(out, "JPEG", quality=quality)
        return Smaller(f"data:image/jpeg;base64,{base64.b64encode(out.getvalue()).decode()}", was, flat.size)


def _flat(picture: Picture) -> Picture | None:
    """What JPEG can hold: see-through parts on white; None for what has more than 8 bits."""
    if picture.mode in _OPAQUE and "transparency" not in picture.info:
        return picture.convert("RGB")
    if picture.mode not in _OPAQUE | _SEE_THROUGH:
        return None
    from PIL import Image

    layer = picture.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer).convert("RGB")
