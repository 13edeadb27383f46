"""The summary of a conversation, written by a model that is asked as any client's request asks one.

It takes the place of a history, so what is no whole summary (cut off, refused, empty, words before a call of
a tool) is a failure.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson
import structlog

from translators.compaction import INSTRUCTIONS, halved, record
from translators.continuation import added
from translators.errors import ProxyError
from translators.ir import Json, Usage
from translators.responses.items import HOSTED

from ..pipeline import serve
from ..plan import CLIENTS
from ..request import Request, parse_request
from ..routing.routing import Route
from ..stream import Client

if TYPE_CHECKING:
    from ..gateway import Gateway

MAX_HALVES = 3
"""Times a record is made shorter for a model that it is too long for."""
LEAST_CHARS = 1000
"""Of a summary that is to be shorter than one that was cut off, which may have been all thoughts."""
_RECORD = "The record of the conversation:\n\n"
_TOO_LONG = "context_length_exceeded"
_NO_CALLS = (
    "\nThere are no tools here: call none, also where the record has calls. Write the summary itself, now."
)
_BARRED = frozenset({403, 404})
"""What is said of a model that is not there, or not for this key."""

_log = structlog.get_logger("dragoman")


async def summed_up(
    request: Request, headers: Mapping[bytes, bytes], gateway: Gateway
) -> tuple[str, Usage | None]:
    """The words that stand for the input of `request`, and what they took. Raises `ProxyError`.

    One that its token limit cut off is asked for once more, to be shorter, and so is an answer with calls.
    """
    writer = _Writer(request, headers, gateway)
    response = await writer.answer()
    if _calls(response):
        response = await writer.answer(_NO_CALLS)
    elif _is_cut(response):
        most = max(len(_words(response)) // 2, LEAST_CHARS)
        response = await writer.answer(f"\nWrite no more than {most} characters: a longer one was cut off.")
    return _whole(response, request.trace.target), writer.usage


class _Writer:
    """The model that is to write a summary of one request."""

    def __init__(self, request: Request, headers: Mapping[bytes, bytes], gateway: Gateway) -> None:
        self._request, self._headers, self._gateway = request, headers, gateway
        self._text = record(request.call(CLIENTS["responses"]).items)
        self.usage: Usage | None = None
        """Of all its answers."""

    async def answer(self, more: str = "") -> Json:
        """Its response, `more` said at the end of the instructions; raises `ProxyError`.

        Of a record that is too long for it the middle goes.
        """
        for _ in range(MAX_HALVES):
            try:
                return await self._asked(INSTRUCTIONS + more)
            except ProxyError as error:
                if error.body()["code"] != _TOO_LONG:
                    raise
                self._text = halved(self._text)
        return await self._asked(INSTRUCTIONS + more)

    async def _asked(self, instructions: str) -> Json:
        """The exchange is in the request's trace; raises `ProxyError`."""
        request, gateway = self._request, self._gateway
        trace = request.trace
        asked = {
            "model": gateway.compaction.model or request.model,
            "instructions": instructions,
            "input": _RECORD + self._text,
            "store": False,
        }
        inner = parse_request("responses", orjson.dumps(asked), self._headers, trace, gateway.seal_key)
        inner.context = replace(inner.context, refusal_as_text=False)
        trace.model, trace.stream = request.model, request.stream
        listener = _Listener()
        client = Client(listener, trace, gateway.patience)
        try:
            await serve(inner, self._route(inner), client, gateway)
        except ProxyError as error:
            raise self._blamed(error) from None
        finally:
            client.release()
            trace.first_byte, trace.status = None, 0
        trace.usage = self.usage = added(self.usage, trace.usage)
        response: Json = orjson.loads(listener.body)
        return response

    def _route(self, inner: Request) -> Route:
        return self._gateway.router.route(inner, self._headers, self._gateway.catalog)

    def _blamed(self, error: ProxyError) -> ProxyError:
        """The failure as the client's who named the model, or the configuration's that names another."""
        model = self._gateway.compaction.model
        if model is None or error.http_status not in _BARRED:
            return error
        _log.error("compaction:model_unusable", model=model, reason=str(error))
        message = (
            "the conversation cannot be compacted: the model that this gateway has write summaries "
            "(compaction.model in its configuration) does not exist, or is not for this API key. "
            "Whoever runs the gateway has to change that."
        )
        return ProxyError("internal", message, code="compaction_model_unusable")


class _Listener:
    """A client within the gateway: keeps the body of its answer."""

    def __init__(self) -> None:
        self.body = b""

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        self.body += message.get("body", b"")


def _calls(response: Json) -> bool:
    """Whether it wants a tool run before it goes on: what it has said until then is no summary."""
    return any(_is_call(item) for item in response.get("output", ()))


def _is_call(item: Json) -> bool:
    kind = str(item.get("type"))
    if kind == "tool_search_call":
        return item.get("execution") != "server"
    return kind not in HOSTED and kind.endswith(("_call", "_approval_request"))


def _is_cut(response: Json) -> bool:
    return response.get("status") == "incomplete" and _reason(response) != "content_filter"


def _reason(response: Json) -> Any:
    details = response.get("incomplete_details")
    return details.get("reason") if isinstance(details, dict) else None


def _whole(response: Json, target: str) -> str:
    """The summary in it; raises `ProxyError` (502) unless it is a whole one."""
    summary, refusal = _words(response), _words(response, "refusal", "refusal")
    if _calls(response):
        why = "asked once more, it called a tool in place of a summary of the conversation"
    elif _is_cut(response):
        why = "asked once more, its token limit cut the summary of the conversation off too"
    elif response.get("status") == "incomplete":
        why = "its content filter ended the summary of the conversation"
    elif refusal:
        why = f"it refused to sum the conversation up: {refusal[:200]}"
    elif not summary:
        why = "it wrote no summary of the conversation"
    else:
        return summary
    raise ProxyError("upstream", f"nothing was compacted by {target}: {why}")


def _words(response: Json, kind: str = "output_text", key: str = "text") -> str:
    parts = [part for item in response.get("output", ()) for part in item.get("content") or ()]
    return "".join(part[key] for part in parts if part.get("type") == kind).strip()
