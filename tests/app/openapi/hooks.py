"""For schemathesis' command: models that are there, in the place of made-up names."""

from __future__ import annotations

from typing import Any

import schemathesis

MODELS = ("chat/m", "responses/m")


@schemathesis.hook
def map_body(context: Any, body: Any) -> Any:
    if isinstance(body, dict) and isinstance(body.get("model"), str) and body["model"].strip():
        body["model"] = MODELS[len(body) % 2]
    return body
