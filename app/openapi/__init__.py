"""The OpenAPI document of the gateway's routes, made when it is first asked for.

Of no use to a request: nothing here is imported before. What a request's parameters may be is read from
the tables that requests are checked with, so that the document cannot say anything else.
"""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from typing import Any

import orjson


def document() -> dict[str, Any]:
    """The document, OpenAPI 3.1, for the caller to do with as it likes: parts of it stand in the tables."""
    from .assembly import make

    return deepcopy(make())


@cache
def rendered() -> bytes:
    """The document's JSON."""
    return orjson.dumps(document())
