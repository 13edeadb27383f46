"""Requests as clients of each shape send them: whole bodies, legal and less legal ones."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from translators.ir import Shape

Json = dict[str, Any]

WORDS = st.sampled_from(["hi", "é\u2028x", "two\nlines", "  padded  ", "{}"])
URL = st.sampled_from(["data:image/png;base64,AAAA", "https://example.com/a.png"])
NAMES = ("get_weather", "exec", "a-b_c")
SCHEMA: Json = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
GRAMMAR: Json = {"syntax": "lark", "definition": "start: /x/"}


def maybe(draw: st.DrawFn, key: str, values: st.SearchStrategy[Any]) -> Json:
    return {key: draw(values)} if draw(st.booleans()) else {}


# --- what both shapes ask in the same way ----------------------------------------------


@st.composite
def shared_params(draw: st.DrawFn) -> Json:
    return {
        **maybe(draw, "temperature", st.sampled_from([0, 0.5, 1])),
        **maybe(draw, "top_p", st.sampled_from([0.1, 1])),
        **maybe(draw, "metadata", st.sampled_from([{}, {"a": "b"}])),
        **maybe(draw, "user", st.just("u")),
        **maybe(draw, "store", st.booleans()),
        **maybe(draw, "service_tier", st.sampled_from(["auto", "flex"])),
        **maybe(draw, "prompt_cache_key", st.just("k")),
        **maybe(draw, "safety_identifier", st.just("s")),
    }


FORMATS = st.sampled_from(
    [
        {"type": "json_object"},
        {"type": "json_schema", "name": "answer", "schema": SCHEMA, "strict": True},
        {"type": "json_schema", "name": "answer", "schema": SCHEMA},
    ]
)
EFFORTS = st.sampled_from(["minimal", "low", "medium", "high", "xhigh"])


# --- Chat ------------------------------------------------------------------------------


def _chat_part() -> st.SearchStrategy[Json]:
    detail = st.sampled_from([{}, {"detail": "high"}, {"detail": "auto"}])
    return st.one_of(
        WORDS.map(lambda text: {"type": "text", "text": text}),
        st.builds(lambda url, d: {"type": "image_url", "image_url": {"url": url, **d}}, URL, detail),
        st.just(
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA"}}
        ),
        st.just({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}),
    )


@st.composite
def _chat_turn(draw: st.DrawFn, number: int, custom: bool) -> list[Json]:
    """One exchange: something said, or calls with their results right after."""
    kind = draw(st.sampled_from(["user", "user", "system", "developer", "assistant", "calls"]))
    if kind == "user":
        return [{"role": "user", "content": draw(WORDS | st.lists(_chat_part(), min_size=1, max_size=3))}]
    if kind in ("system", "developer"):
        return [{"role": kind, "content": draw(WORDS)}]
    asked: Json = {"role": "user", "content": draw(WORDS)}
    message: Json = {"role": "assistant", "content": draw(WORDS)}
    if draw(st.booleans()):
        message["reasoning_content"] = draw(st.sampled_from(["thought", "one\n\ntwo"]))
    if kind == "assistant":
        return [asked, message]
    calls = [draw(_chat_call(f"call_{number}_{i}", custom)) for i in range(draw(st.integers(1, 2)))]
    message["content"] = draw(st.none() | WORDS)
    message["tool_calls"] = calls
    results = [{"role": "tool", "tool_call_id": call["id"], "content": draw(WORDS)} for call in calls]
    return [asked, message, *results]


@st.composite
def _chat_call(draw: st.DrawFn, call_id: str, custom: bool) -> Json:
    if custom and draw(st.booleans()):
        return {"id": call_id, "type": "custom", "custom": {"name": "patch", "input": draw(WORDS)}}
    function = {"name": draw(st.sampled_from(NAMES)), "arguments": '{"city":"é"}'}
    return {"id": call_id, "type": "function", "function": function}


@st.composite
def _chat_tools(draw: st.DrawFn, custom: bool) -> Json:
    tools: list[Json] = []
    for name in NAMES[: draw(st.integers(0, 3))]:
        function = {"name": name, **maybe(draw, "description", WORDS), **maybe(draw, "strict", st.booleans())}
        tools.append({"type": "function", "function": {**function, "parameters": SCHEMA}})
    if custom:
        form = draw(st.sampled_from([{"type": "text"}, {"type": "grammar", "grammar": GRAMMAR}]))
        tools.append({"type": "custom", "custom": {"name": "patch", "format": form}})
    if not tools:
        return {}
    kind = tools[0]["type"]
    first = {"type": kind, kind: {"name": tools[0][kind]["name"]}}
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [first]}}
    choices = st.sampled_from(["auto", "none", "required", first, allowed])
    choice, parallel = maybe(draw, "tool_choice", choices), maybe(draw, "parallel_tool_calls", st.booleans())
    return {"tools": tools, **choice, **parallel}


@st.composite
def chat_bodies(draw: st.DrawFn, custom: bool = False) -> Json:
    turns = [draw(_chat_turn(number, custom)) for number in range(draw(st.integers(0, 4)))]
    messages = [message for turn in turns for message in turn]
    format_ = draw(st.none() | FORMATS)
    body = {
        "model": "m",
        "messages": [*messages, {"role": "user", "content": draw(WORDS)}],
        **draw(shared_params()),
        **draw(_chat_tools(custom)),
        **maybe(draw, "max_completion_tokens", st.sampled_from([16, 4000])),
        **maybe(draw, "stop", st.sampled_from(["END", ["a", "b"]])),
        **maybe(draw, "seed", st.just(7)),
        **maybe(draw, "presence_penalty", st.sampled_from([0, 0.5])),
        **maybe(draw, "reasoning_effort", EFFORTS),
        **maybe(draw, "verbosity", st.just("low")),
        **maybe(draw, "stream", st.booleans()),
    }
    if format_ is not None:
        spec = {key: value for key, value in format_.items() if key != "type"}
        nested = {"json_schema": spec} if spec else {}
        body["response_format"] = {"type": format_["type"], **nested}
    return body


# --- Responses -------------------------------------------------------------------------


def _responses_part() -> st.SearchStrategy[Json]:
    detail = st.sampled_from([{}, {"detail": "high"}, {"detail": "auto"}])
    return st.one_of(
        WORDS.map(lambda text: {"type": "input_text", "text": text}),
        st.builds(lambda url, d: {"type": "input_image", "image_url": url, **d}, URL, detail),
        st.just({"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AA"}),
    )


@st.composite
def _responses_turn(draw: st.DrawFn, number: int, custom: bool) -> list[Json]:
    kind = draw(st.sampled_from(["user", "user", "system", "developer", "assistant", "reasoning", "calls"]))
    if kind == "user":
        content = draw(WORDS | st.lists(_responses_part(), min_size=1, max_size=3))
        return [{"type": "message", "role": "user", "content": content}]
    if kind in ("system", "developer"):
        return [{"type": "message", "role": kind, "content": draw(WORDS)}]
    text = {"type": "output_text", "text": draw(WORDS), "annotations": []}
    said = {
        "type": "message",
        "id": f"msg_{number}",
        "role": "assistant",
        "status": "completed",
        "content": [text],
    }
    asked: Json = {"type": "message", "role": "user", "content": draw(WORDS)}
    if kind == "assistant":
        return [asked, said]
    if kind == "reasoning":
        summary = [{"type": "summary_text", "text": draw(WORDS)}]
        return [
            {"type": "reasoning", "id": f"rs_{number}", "summary": summary, "encrypted_content": "zz"},
            said,
        ]
    calls = [draw(_responses_call(f"{number}_{i}", custom)) for i in range(draw(st.integers(1, 2)))]
    results = [
        {"type": f"{call['type']}_output", "call_id": call["call_id"], "output": draw(WORDS)}
        for call in calls
    ]
    return [asked, *calls, *results]


@st.composite
def _responses_call(draw: st.DrawFn, number: str, custom: bool) -> Json:
    if custom and draw(st.booleans()):
        call = {"type": "custom_tool_call", "id": f"ctc_{number}", "call_id": f"call_{number}"}
        return {**call, "name": "patch", "input": draw(WORDS)}
    call = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}"}
    return {**call, "name": draw(st.sampled_from(NAMES)), "arguments": '{"city":"é"}'}


@st.composite
def _responses_tools(draw: st.DrawFn, custom: bool) -> Json:
    tools: list[Json] = []
    for name in NAMES[: draw(st.integers(0, 3))]:
        tool = {"type": "function", "name": name, **maybe(draw, "description", WORDS)}
        tools.append({**tool, "strict": draw(st.booleans()), "parameters": SCHEMA})
    if custom:
        form = draw(st.sampled_from([{"type": "text"}, {"type": "grammar", **GRAMMAR}]))
        tools.append({"type": "custom", "name": "patch", "format": form})
        inner = {"type": "function", "name": "add", "strict": False, "parameters": SCHEMA}
        tools.append({"type": "namespace", "name": "mcp__calc", "description": "d", "tools": [inner]})
    if not tools:
        return {}
    first = {"type": tools[0]["type"], "name": tools[0]["name"]}
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": [first]}
    choices = st.sampled_from(["auto", "none", "required", first, allowed])
    choice, parallel = maybe(draw, "tool_choice", choices), maybe(draw, "parallel_tool_calls", st.booleans())
    return {"tools": tools, **choice, **parallel}


@st.composite
def responses_bodies(draw: st.DrawFn, custom: bool = False) -> Json:
    turns = [draw(_responses_turn(number, custom)) for number in range(draw(st.integers(0, 4)))]
    items = [item for turn in turns for item in turn]
    text = {**maybe(draw, "format", FORMATS), **maybe(draw, "verbosity", st.just("low"))}
    reasoning = {**maybe(draw, "effort", EFFORTS), **maybe(draw, "summary", st.just("auto"))}
    return {
        "model": "m",
        "input": [*items, {"type": "message", "role": "user", "content": draw(WORDS)}],
        **draw(shared_params()),
        **draw(_responses_tools(custom)),
        **maybe(draw, "instructions", WORDS),
        **maybe(draw, "max_output_tokens", st.sampled_from([16, 4000])),
        **maybe(draw, "truncation", st.sampled_from(["auto", "disabled"])),
        **maybe(draw, "include", st.just(["reasoning.encrypted_content"])),
        **maybe(draw, "stream", st.booleans()),
        **({"text": text} if text else {}),
        **({"reasoning": reasoning} if reasoning else {}),
    }


def bodies(shape: Shape, custom: bool = False) -> st.SearchStrategy[Json]:
    return chat_bodies(custom) if shape == "chat" else responses_bodies(custom)
