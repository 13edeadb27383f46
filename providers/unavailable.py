"""A provider that is configured but cannot be asked: an extra is missing, or its account cannot be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from translators.errors import ProxyError
from translators.ir import Shape
from translators.profile import Profile

from .base import ModelInfo, Surface, Upstream

if TYPE_CHECKING:
    from translators.rejections import Rejection

    from .extra_body import ExtraBody


class UnavailableProvider:
    """Keeps its name in the catalogue, so that its models are refused with the reason (503)."""

    def __init__(self, name: str, kind: str, reason: str) -> None:
        self.name, self.kind = name, kind
        self.unavailable: str | None = reason
        self.origin = ""
        self.private: Sequence[str] = ()
        self.extra_body: ExtraBody | None = None

    def surfaces(self, model: str, client: Shape) -> Sequence[Surface]:
        return ()

    def profile(self, model: str, surface: Surface, overrides: Mapping[str, Any] | None = None) -> Profile:
        return Profile()

    def explain(self, model: str, surface: Surface) -> Mapping[str, tuple[Any, str]]:
        return {}

    def learn_refusal(self, model: str, surface: Surface, status: int, body: bytes) -> bool:
        return False

    def known_rejections(self, model: str, surface: Surface) -> Sequence[Rejection]:
        return ()

    def learn_rejections(self, model: str, surface: Surface, found: Sequence[Rejection]) -> None:
        return None

    async def open(self, surface: Surface, model: str, body: bytes, stream: bool) -> Upstream:
        self._refuse()

    async def models(self) -> Sequence[ModelInfo]:
        self._refuse()

    async def aclose(self) -> None:
        return None

    def _refuse(self) -> NoReturn:
        raise ProxyError("unavailable", f"provider {self.name} is unavailable: {self.unavailable}")
