"""The stream machine: upstream bytes in, client bytes out.

One string: framer -> decoder -> restorer -> encoder. `feed` gives one bytes object for each
network read, whatever the number of events in it, so that the server sends once where the
upstream sent once. Nothing here waits or knows a clock.

The end is judged in one place. The decoder says `Finished` or `Failed`; `close` makes it
decide when the bytes stop early; `fail` ends the reply from outside (timeout, lost
connection). Whatever comes after the end is ignored.

Between restorer and encoder stands the guard (`guard.py`): the encoder gets legal events only.
An exception of ours on the way ends the reply as failed, with all that was written before it;
`fault` keeps it for the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Protocol

from .dialect import End, Framer, StreamDecoder, StreamEncoder
from .errors import ProxyError, conceal
from .framing import SseFramer
from .guard import Guard, Violations
from .ir import Delta, Event, Failed, Finished, Json, Started, Usage
from .lenient import is_torn_object, read_json


class Restorer(Protocol):
    """Turns events about lowered tools back into events about the client's own tools."""

    def feed(self, event: Event, /) -> Iterable[Event]: ...


class StreamTranslator:
    """Translate one reply stream; see the module's words."""

    def __init__(
        self,
        decoder: StreamDecoder,
        encoder: StreamEncoder,
        restorer: Restorer | None = None,
        private: Sequence[str] = (),
        framer: Framer | None = None,
    ) -> None:
        """`framer` None: the stream is one of server-sent events."""
        self._framer = framer or SseFramer()
        self._decoder, self._encoder, self._restorer = decoder, encoder, restorer
        self._private = private
        self._guard = Guard()
        self.begun = self.ended = False
        self.error: ProxyError | None = None
        """The failure the reply ended with, None while it runs and when it ended well."""
        self.fault: Exception | None = None

    @property
    def told(self) -> bool:
        return self._decoder.told and not self.ended

    @property
    def violations(self) -> Violations:
        return self._guard.violations

    @property
    def usage(self) -> Usage | None:
        return self._encoder.usage

    @property
    def end(self) -> End | None:
        return self._encoder.end

    def start(self) -> bytes:
        """Opening frames before the backend has said anything (long silences)."""
        return b"" if self.ended else self._encoder.start()

    def keepalive(self) -> bytes:
        return b"" if self.ended else self._encoder.keepalive()

    def feed(self, data: bytes) -> bytes:
        out: list[bytes] = []
        try:
            for payload in self._framer.feed(data):
                self._take(payload, out)
        except ProxyError as error:  # an event without an end
            out.append(self.fail(error))
        except Exception as error:
            self._break(error, out)
        return b"".join(out)

    def close(self) -> bytes:
        """End of the upstream's bytes; an early one gives a failed reply, never silence."""
        out: list[bytes] = []
        try:
            for payload in self._framer.close():
                self._take(payload, out)
            if not self.ended:
                self._put(self._decoder.close(), out)
        except Exception as error:
            self._break(error, out)
        return b"".join(out)

    def take(self, events: Iterable[Event]) -> bytes:
        """Events that came as no stream: a whole reply, for a client that asked for a stream."""
        out: list[bytes] = []
        try:
            self._put(events, out)
        except ProxyError:
            raise
        except Exception as error:
            self._break(error, out)
        return b"".join(out)

    def body(self) -> Json:
        """The reply as one body, for a client that asked for no stream; call it after the end."""
        return self._encoder.body()

    def fail(self, error: ProxyError) -> bytes:
        """End the reply as failed; without effect when it has ended already.

        It has ended well where the backend had told its end, and only its bytes broke off.
        """
        out: list[bytes] = []
        if self.ended:
            return b""
        try:
            last = list(self._decoder.close())
            told = any(isinstance(event, Finished) for event in last)
            self._put(last if told else (Failed(error),), out)
        except Exception as fault:
            self._break(fault, out)
        return b"".join(out)

    def _take(self, payload: bytes, out: list[bytes]) -> None:
        if self.ended:
            if self.error is None and payload.strip() != b"[DONE]":
                self.violations.count("after_end")
            return
        if payload == b"[DONE]":
            self._put(self._decoder.done(), out)
            return
        value, _ = read_json(payload)
        if isinstance(value, dict):
            self._put(self._decoder.feed(value), out)
        elif isinstance(value, list):  # Google's error bodies
            for entry in value:
                if isinstance(entry, dict):
                    self._put(self._decoder.feed(entry), out)
        else:
            self.violations.count("not_json")
            if is_torn_object(payload):
                self._put(self._decoder.lost(), out)

    def _put(self, events: Iterable[Event], out: list[bytes]) -> None:
        restorer, encode, opened = self._restorer, self._encoder.feed, self._guard.open
        for event in events:
            for each in (event,) if restorer is None else restorer.feed(event):
                if type(each) is Delta and each.index in opened:  # nearly all of them
                    out.append(encode(each))
                else:
                    for mended in self._guard.mend(each):
                        self._emit(mended, out)
                    if self.error is not None:
                        return

    def _emit(self, event: Event, out: list[bytes]) -> None:
        if isinstance(event, Failed):
            self.error = conceal(event.error, self._private)
        elif isinstance(event, Started):
            self.begun = True
        try:
            out.append(self._encoder.feed(event))
        except ProxyError as error:  # what was streamed is wrong: nothing more of this reply is true
            for failed in self._guard.mend(Failed(error)):
                self._emit(failed, out)
            return
        self.ended = isinstance(event, Finished | Failed)

    def _break(self, fault: Exception, out: list[bytes]) -> None:
        """A bug of ours: the client is told of a failure, also where the encoder is what failed."""
        self.violations.count("fault")
        self.fault = self.fault or fault
        error = ProxyError("internal", "The gateway failed while it translated this reply.")
        with suppress(Exception):
            if not self.ended:
                self._emit(Failed(error), out)
        if not self.ended:
            self.ended, self.error = True, error
            with suppress(Exception):
                out.append(self._encoder.abort(error))
