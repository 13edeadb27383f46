"""A reasoning item keeps the id that its encrypted content is bound to, in a translated reply too."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.translators.responses_player import ids
from translators.dialect import ReplyContext
from translators.framing import SseFramer
from translators.ir import Json
from translators.profile import Profile
from translators.responses import ResponsesBackend, ResponsesClient
from translators.translate import translate_request

ASKED: Json = {
    "model": "m",
    "input": "go",
    "tools": [{"type": "namespace", "name": "ns", "tools": [{"type": "function", "name": "f"}]}],
}
CALL = {"type": "function_call", "call_id": "c", "name": "ns__f", "arguments": "{}", "status": "completed"}


def thought(id: Any) -> Json:
    summary = [{"type": "summary_text", "text": "hm"}]
    return {"type": "reasoning", "id": id, "summary": summary, "encrypted_content": "gAAAA"}


def events(*items: Json) -> list[Json]:
    """The shortest stream of these items that OpenAI's own resembles."""
    out: list[Json] = [{"type": "response.created", "response": {"id": "resp_up", "output": []}}]
    for index, item in enumerate(items):
        begun = {**item, "summary": []} if item["type"] == "reasoning" else {**item, "arguments": ""}
        out.append({"type": "response.output_item.added", "output_index": index, "item": begun})
        out.append({"type": "response.output_item.done", "output_index": index, "item": item})
    body = {"id": "resp_up", "status": "completed", "output": list(items)}
    return [*out, {"type": "response.completed", "response": body}]


def translated(*items: Json) -> tuple[list[str], list[Json], list[Json]]:
    """Ids of the reasoning in the stream's items, its last output, and that of the whole reply."""
    client, backend = ResponsesClient(), ResponsesBackend()
    call = client.decode_request(ASKED, ids())
    translation = translate_request(call, client, backend, Profile())
    context = ReplyContext(created=1, model="m", new_id=ids())
    wire = b"".join(b"data: %b\n\n" % orjson.dumps(event) for event in events(*items))
    told = [
        orjson.loads(payload)
        for payload in SseFramer().feed(translation.stream(context).feed(wire))
        if payload != b"[DONE]"
    ]
    told_ids = [each["item"]["id"] for each in told if each.get("item", {}).get("type") == "reasoning"]
    reply, _ = translation.reply(events(*items)[-1]["response"], context)
    return told_ids, told[-1]["response"]["output"], reply["output"]


@pytest.mark.parametrize("id", ["rs_1", "rs_68a-Bc_9", "rs_" + "x" * 61])
def test_it_keeps_its_id(id: str) -> None:
    told, streamed, whole = translated(thought(id), {**CALL, "id": "fc_1"})
    assert told == [id, id]
    assert (streamed[0]["id"], streamed[0]["encrypted_content"]) == (id, "gAAAA")
    assert (whole[0]["id"], whole[0]["encrypted_content"]) == (id, "gAAAA")
    assert streamed[1]["namespace"] == "ns"


@pytest.mark.parametrize("id", [None, "", "thought-1", "rs_" + "x" * 62, "rs_a b", "msg_1"])
def test_an_id_that_clients_refuse_is_replaced(id: str | None) -> None:
    """Codex drops ids of another prefix, and nobody takes more than 64 characters."""
    told, streamed, whole = translated(thought(id))
    assert told == ["rs_1", "rs_1"]
    assert [streamed[0]["id"], whole[0]["id"]] == ["rs_1", "rs_2"]
