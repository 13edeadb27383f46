"""What the routes share: configuration, catalogue, keys, and who is being served right now."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from config.schema import Server
from providers.catalog import Catalog
from providers.images import Images

from .auth import Keys
from .log import Log
from .models import ModelList
from .seal_key import SealKey
from .stream import Client

if TYPE_CHECKING:
    from .metrics import Metrics


@dataclass(slots=True)
class Gateway:
    """One per process."""

    server: Server
    catalog: Catalog
    keys: Keys
    models: ModelList
    log: Log
    metrics: Metrics
    seal_key: SealKey = field(init=False)
    images: Images = field(default_factory=Images)
    serving: set[Client] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.seal_key = SealKey(self.server)

    def not_ready(self) -> str | None:
        """Why no call can be answered now, None when one can."""
        providers = self.catalog.providers
        if not providers:
            return "no provider is configured"
        reasons = [f"{each.name}: {each.unavailable}" for each in providers if each.unavailable is not None]
        return "; ".join(reasons) if len(reasons) == len(providers) else None

    def end_open_answers(self) -> None:
        """The grace of a shutdown is over: what still runs fails, each answer in its own way."""
        for client in list(self.serving):
            client.interrupt("shutdown")
