"""Bodies by which a key's tokens once went uncounted."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from tests.app.conftest import Serve, provider
from tests.app.keyed import entry, signed, written
from tests.app.test_key_limits import until_tokens_are_gone
from tests.backends.replies import chat_completion, chat_stream, json_reply, sse_reply
from tests.backends.scripted import ScriptedBackend

ASK = {"model": "p/m", "messages": [{"role": "user", "content": "hello world " * 20}]}
MARK = b"\xef\xbb\xbf"
BODIES = {
    "a byte order mark": lambda body: MARK + body,
    "half a surrogate pair": lambda body: body.replace(b"hello", b"\\ud800", 1),
}


@pytest.mark.parametrize("made", BODIES.values(), ids=BODIES.keys())
@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_is_estimated_as_it_was_read(
    serve: Serve, scripted: ScriptedBackend, tmp_path: Path, made: object, stream: bool
) -> None:
    """The backend tells no tokens: what the body was worth was never counted, and the log told a fault."""
    assert callable(made)
    keys = written(tmp_path / "keys.toml", entry("a", limits={"tokens_per_minute": 3}))
    served = serve(fresh=True, server={"keys_file": keys}, providers=[provider(scripted)])
    told = {**chat_completion("yo"), "usage": None}
    scripted.play(sse_reply(chat_stream("yo", usage=False)) if stream else json_reply(told))
    with served.client(headers=signed("a")) as client:
        body = made(orjson.dumps({**ASK, "stream": stream}))
        first = client.post("/v1/chat/completions", content=body)
        assert first.status_code == 200
        refused = until_tokens_are_gone(client)
    assert refused.headers["x-ratelimit-remaining-tokens"] == "0"
    assert len(scripted.requests) < 3
    assert not served.log("fault")
