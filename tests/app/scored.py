"""A workspace whose listing tests write: nine chat endpoints with a published quality, and some without."""

from __future__ import annotations

from typing import Any

from tests.backends.loopback import Loopback, Reply, Request
from tests.backends.replies import json_reply
from tests.backends.scripted import plain_reply
from tests.providers.ranking.fleet import endpoint

NINE = (
    ("databricks-claude-opus-4-8", 90.0),
    ("databricks-claude-opus-4-5", 80.0),
    ("databricks-gpt-5-5", 70.0),
    ("databricks-claude-sonnet-4-6", 60.0),
    ("databricks-gemini-3-1-pro", 50.0),
    ("databricks-gpt-5-3-codex", 40.0),
    ("databricks-claude-haiku-4-5", 30.0),
    ("databricks-meta-llama-3-3-70b-instruct", 20.0),
    ("databricks-gpt-5-4-mini", 10.0),
)
THIRDS = {"chat-thinking": NINE[:3], "chat-balanced": NINE[3:6], "chat-fast": NINE[6:]}
EMBEDDINGS = ("databricks-gte-large-en", "databricks-bge-large-en")


def listing() -> list[dict[str, Any]]:
    """Worst first, so that no order is right by chance; costs fall with quality."""
    entries = [endpoint(name, scores=(quality, 50.0, quality / 10)) for name, quality in reversed(NINE)]
    entries += [endpoint(name, "llm/v1/embeddings") for name in EMBEDDINGS]
    entries.append(endpoint("churn-model", None))
    for entry in entries:
        model = entry["config"]["served_entities"][0]["foundation_model"]
        if entry["name"] == "databricks-gpt-5-4-mini":
            model["capabilities"] = {"function_calling": False}
        if entry["name"] == "databricks-claude-opus-4-8":
            model["capabilities"] = {"function_calling": True, "vision": True, "reasoning": True}
    return entries


class Workspace:
    """A Databricks workspace that lists what it is told to."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] | None = listing()
        self.server = Loopback(self._answer)

    def _answer(self, request: Request) -> Reply:
        if request.method == "POST":
            return plain_reply(request.path, request.json)
        if not request.path.endswith("/serving-endpoints"):
            return json_reply({"error_code": "ENDPOINT_NOT_FOUND"}, 404)
        if self.entries is None:
            return json_reply({"message": "down"}, 500)
        return json_reply({"endpoints": self.entries})
