"""Media that a backend takes none of: kept, refused by place, or told in words."""

from __future__ import annotations

from typing import Any

import pytest

from translators.chat import ChatBackend, ChatClient
from translators.dialect import Loss
from translators.errors import ProxyError
from translators.ir import Audio, File, Image, Opaque, Part
from translators.media import described
from translators.responses import ResponsesBackend, ResponsesClient
from translators.responses.edit_media import edit_media
from translators.translate import translate_request

from .chat_edits import profile

PNG = "data:image/png;base64," + "A" * 16400
TOLD = "[image: image/png, 12.3 KB]"


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (Image(PNG), TOLD),
        (Image("https://u:p@h.test/a.png?sig=secret#x"), "[image: h.test/a.png]"),
        (Image("blob:x"), "[image]"),
        (Image(file_id="file-1"), "[image: file-1]"),
        (File(data="QUJD", filename="a]\nb.pdf"), "[file: a b.pdf, 3 B]"),
        (File(url="https://h.test/a.pdf?k=1"), "[file: h.test/a.pdf]"),
        (Audio("A" * 8_000_000, "wav"), "[audio: audio/wav, 6.0 MB]"),
        (Audio("A" * 1_600_000_000, "wav"), "[audio: audio/wav, 1.2 GB]"),
        (Opaque("chat", {"type": "video_url"}), "[video_url]"),
        (File(file_id="f", filename="n" * 300), f"[file: {'n' * 200}...]"),
    ],
)
def test_words_for_a_part(part: Part, words: str) -> None:
    assert described(part) == words


CHAT = {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": PNG}}]}]}
RESPONSES = {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": PNG}]}]}
LANES = [
    (backend, shape, body)
    for backend in (ChatBackend(), ResponsesBackend())
    for shape, body in (("chat", CHAT), ("responses", RESPONSES))
]


def sent(backend: Any, shape: str, body: Any, media: Any) -> Any:
    rules = profile(messages={"media": media})
    if backend.name == shape:
        return backend.edit_request({"model": "m", **body}, rules)
    client: Any = ChatClient() if shape == "chat" else ResponsesClient()
    call = client.decode_request({"model": "m", **body}, lambda prefix: prefix + "1")
    return translate_request(call, client, backend, rules).encoded


@pytest.mark.parametrize(("backend", "shape", "body"), LANES)
def test_a_picture_is_told_refused_or_kept(backend: Any, shape: str, body: Any) -> None:
    at = "messages" if shape == "chat" else "input"
    encoded = sent(backend, shape, body, {"image": "describe"})
    assert TOLD in str(encoded.body)
    assert PNG not in str(encoded.body)
    assert [(loss.pointer, loss.kind) for loss in encoded.losses] == [(f"/{at}/0/content/0", "content")]
    with pytest.raises(ProxyError, match="takes no image") as caught:
        sent(backend, shape, body, {"image": "refuse"})
    assert caught.value.param == f"{at}[0].content[0]"
    assert PNG in str(sent(backend, shape, body, {"file": "refuse"}).body)


def test_sound_has_no_responses_form() -> None:
    part = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
    body = {"messages": [{"role": "user", "content": [part]}]}
    with pytest.raises(ProxyError, match="takes no audio"):
        sent(ResponsesBackend(), "chat", body, {})
    told = sent(ResponsesBackend(), "chat", body, {"unsupported": "describe"})
    assert "[audio: audio/wav, 3 B]" in str(told.body)


@pytest.mark.parametrize("shape", ["chat", "responses"])
def test_a_picture_in_the_result_of_a_tool(shape: str) -> None:
    function = {"name": "f", "arguments": "{}"}
    calls = [{"id": "c", "type": "function", "function": function}]
    result = {"role": "tool", "tool_call_id": "c", "content": CHAT["messages"][0]["content"]}
    chat = {"messages": [{"role": "assistant", "content": None, "tool_calls": calls}, result]}
    call = {"type": "function_call", "call_id": "c", **function}
    output = {"type": "function_call_output", "call_id": "c", "output": RESPONSES["input"][0]["content"]}
    body = chat if shape == "chat" else {"input": [call, output]}

    def messages(rule: str) -> Any:
        return sent(ChatBackend(), shape, body, {"tool_results": rule}).body["messages"]

    assert [message["role"] for message in messages("lift")] == ["assistant", "tool", "user"]
    kept, described_ = messages("keep"), messages("describe")
    assert [message["role"] for message in kept] == ["assistant", "tool"]
    assert kept[1]["content"][0]["image_url"]["url"] == PNG
    assert TOLD in str(described_[1])
    with pytest.raises(ProxyError, match="in the result of a tool"):
        messages("refuse")


@pytest.mark.parametrize(("backend", "shape", "body"), LANES)
def test_words_beside_a_picture_stay(backend: Any, shape: str, body: Any) -> None:
    key, kind = ("messages", "text") if shape == "chat" else ("input", "input_text")
    [turn] = body[key]
    turns = [{**turn, "content": [{"type": kind, "text": "see"}, *turn["content"]]}]
    encoded = sent(backend, shape, {key: turns}, {"image": "describe"})
    assert "see" in str(encoded.body)
    assert TOLD in str(encoded.body)
    assert [loss.pointer for loss in encoded.losses] == [f"/{key}/0/content/1"]
    kept = sent(backend, shape, {key: turns}, {"audio": "describe"})
    assert PNG in str(kept.body)
    assert kept.losses == []


def test_what_is_no_item_is_left_for_those_who_check_it() -> None:
    body: Any = {"input": ["odd", *RESPONSES["input"]]}
    losses: list[Loss] = []
    edit_media(body, profile(messages={"media": {"image": "describe"}}).messages.media, losses)
    assert body["input"][0] == "odd"
    assert [loss.pointer for loss in losses] == ["/input/1/content/0"]
