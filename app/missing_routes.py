"""Well-known paths of OpenAI, Anthropic and Ollama that are not served, and what is instead."""

from __future__ import annotations

_CALLS = "POST /v1/chat/completions or POST /v1/responses"
_INSTEAD = {
    "/v1/completions": f"prompts without roles are not served: send messages to {_CALLS}",
    "/v1/messages": f"Anthropic's API is not served: use an OpenAI client, with {_CALLS}",
    "/v1/audio": f"audio is not served apart: {_CALLS} pass it on to models that take it",
    "/v1/images": f"pictures are not made apart: {_CALLS} pass an image tool on to backends that have it",
    "/v1/files": f"files are not kept: send them as data within the input of {_CALLS}",
    "/v1/batches": "batches are not served: POST /v1/responses with `background: true` answers later",
    "/v1/moderations": "moderation is not served: ask its provider directly",
    "/api": f"Ollama's own API is not served: use {_CALLS}, POST /v1/embeddings or GET /v1/models",
}


def instead_of(path: str) -> str:
    """`; ...` to put behind the refusal of a path, nothing for one that nobody knows."""
    for known, words in _INSTEAD.items():
        for start in (known, known.removeprefix("/v1")):
            if path == start or path.startswith(start + "/"):
                return f"; {words}"
    return ""
