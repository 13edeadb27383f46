"""Every pair of a client's shape and a backend's shape, and the machines between them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from tests.laws.folds import (
    Failure,
    fold_chat_body,
    fold_chat_stream,
    fold_responses_body,
    fold_responses_stream,
)
from tests.laws.render_chat import ChatStyle, chat_body, chat_chunks, chat_styles
from tests.laws.render_responses import ResponsesStyle, responses_body, responses_events, responses_styles
from tests.laws.scripts import Called, Said, Script, Words, said
from translators.chat import ChatBackend, ChatClient
from translators.dialect import BackendDialect, ClientDialect, Encoded, ReplyContext
from translators.ir import Call, Shape
from translators.profile import Profile
from translators.responses import ResponsesBackend, ResponsesClient
from translators.stream import StreamTranslator
from translators.translate import Translation

Json = dict[str, Any]
Style = ChatStyle | ResponsesStyle

CLIENTS: dict[Shape, ClientDialect] = {"chat": ChatClient(), "responses": ResponsesClient()}
BACKENDS: dict[Shape, BackendDialect] = {"chat": ChatBackend(), "responses": ResponsesBackend()}
PAIRS = [(client, backend) for client in CLIENTS for backend in BACKENDS]


def new_ids() -> Callable[[str], str]:
    """Ids that are the same in every run."""
    numbers = iter(range(10**6))
    return lambda prefix: f"{prefix}{next(numbers):08d}"


def context(stream: bool = True) -> ReplyContext:
    echo: Json = {"model": "asked", "input": "hi", "stream": stream}
    return ReplyContext(created=7, model="asked", new_id=new_ids(), echo=echo, stream=stream)


def call(client: Shape) -> Call:
    hi = {"messages": [{"role": "user", "content": "hi"}]} if client == "chat" else {"input": "hi"}
    return CLIENTS[client].decode_request({"model": "asked", **hi}, new_ids())


def translator(client: Shape, backend: Shape, profile: Profile | None = None) -> StreamTranslator:
    decoder = BACKENDS[backend].decoder(profile or Profile())
    return StreamTranslator(decoder, CLIENTS[client].encoder(call(client), context()))


def translate(client: Shape, backend: Shape, chunks: Iterable[bytes]) -> bytes:
    """A whole stream through a fresh translator, `close` included."""
    machine = translator(client, backend)
    return b"".join([machine.feed(chunk) for chunk in chunks]) + machine.close()


def plain_reply(client: Shape, backend: Shape, body: Json) -> Json:
    """A non-streamed reply; raises the error it carries."""
    asked = call(client)
    encoded = Encoded({})
    translation = Translation(asked, encoded, CLIENTS[client], BACKENDS[backend], Profile(), {})
    return translation.reply(body, context(stream=False))[0]


# --- what a backend says ---------------------------------------------------------------


def styles(backend: Shape) -> st.SearchStrategy[Style]:
    return chat_styles() if backend == "chat" else responses_styles()


def objects(script: Script, style: Style) -> list[Json]:
    if isinstance(style, ChatStyle):
        return chat_chunks(script, style)
    return responses_events(script, style)


def body(script: Script, style: Style) -> Json:
    return chat_body(script) if isinstance(style, ChatStyle) else responses_body(script, style)


def sse_bytes(
    objs: Iterable[Json],
    done: bool = True,
    newline: bytes = b"\n",
    names: bool = False,
    lines: bool = False,
) -> bytes:
    """The objects as a stream.

    `names` adds the `event:` lines of the Responses wire, `lines` spreads each object over
    several `data:` lines, which together are one payload.
    """
    frames = []
    for obj in objs:
        name = [f"event: {obj['type']}".encode()] if names and isinstance(obj.get("type"), str) else []
        text = json.dumps(obj, ensure_ascii=False, indent=1 if lines else None)
        frames.append([*name, *(b"data: " + line.encode() for line in text.split("\n"))])
    frames += [[b"data: [DONE]"]] if done else []
    return b"".join(newline.join([*frame, b"", b""]) for frame in frames)


def told(script: Script, style: Style) -> Said:
    """What a client must be told when a backend says `script` in this style."""
    whole = said(script)
    if isinstance(style, ChatStyle) and style.arguments == "object":
        whole = replace(whole, calls=tuple(call._replace(arguments=_compact(call)) for call in whole.calls))
    if isinstance(style, ChatStyle) and style.thought == "tags" and whole.thought:
        # White space beside the tags is the chat template's.
        return replace(whole, thought=whole.thought.lstrip(), text=whole.text.lstrip())
    if isinstance(style, ResponsesStyle) and style.thought == "parts":
        thoughts = [p for p in script.pieces if isinstance(p, Words) and p.kind == "thought"]
        return replace(whole, thought="".join("\n\n".join(thought.fragments) for thought in thoughts))
    return whole


def _compact(call: Called) -> str:
    """Arguments that came as an object are its JSON."""
    return json.dumps(json.loads(call.arguments), ensure_ascii=False, separators=(",", ":"))


def understood(client: Shape, out: bytes) -> Said | Failure:
    return fold_chat_stream(out) if client == "chat" else fold_responses_stream(out)


def understood_body(client: Shape, reply: Json) -> Said:
    return fold_chat_body(reply) if client == "chat" else fold_responses_body(reply)


def ends(obj: Json) -> bool:
    """Whether this object tells the end of the reply."""
    choices = obj.get("choices")
    finished = isinstance(choices, list) and any(choice["finish_reason"] for choice in choices)
    return finished or obj.get("type") in ("response.completed", "response.incomplete")
