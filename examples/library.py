"""The translators without the service: a Responses client in front of a Chat backend.

Bytes and values only. Whatever sends requests and receives replies is yours; here it is a
recorded stream.
"""

import itertools
import time

from translators.chat import ChatBackend
from translators.dialect import ReplyContext
from translators.profile import Profile
from translators.responses import ResponsesClient
from translators.translate import translate_request

REQUEST = {
    "model": "gpt-5",
    "instructions": "Be brief.",
    "input": "Say hello.",
    "reasoning": {"effort": "low"},
    "truncation": "auto",
    "stream": True,
}
RECORDED = [
    b'data: {"id":"c1","choices":[{"index":0,"delta":{"role":"assistant","content":"Hello"}}]}\n\n',
    b'data: {"id":"c1","choices":[{"index":0,"delta":{"content":" there."},"finish_reason":"stop"}]}\n\n',
    b"data: [DONE]\n\n",
]

numbers = itertools.count(1)


def new_id(prefix: str) -> str:
    """Ids are handed in, like the time: the library makes none."""
    return f"{prefix}{next(numbers):024d}"


def main() -> None:
    client, backend = ResponsesClient(), ChatBackend()
    call = client.decode_request(REQUEST, new_id)
    translation = translate_request(call, client, backend, Profile())
    print("to the backend:", translation.encoded.body)
    print("left out:", [loss.pointer for loss in translation.encoded.losses])

    context = ReplyContext(created=int(time.time()), model="gpt-5", new_id=new_id, echo=REQUEST)
    stream = translation.stream(context)
    for data in RECORDED:
        print(stream.feed(data).decode(), end="")
    print(stream.close().decode(), end="")


if __name__ == "__main__":
    main()
