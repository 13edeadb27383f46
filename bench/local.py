"""Tokens a second of a local ONNX model through Dragoman, next to the same model without it.

    python -m bench.local FOLDER [--rounds 9] [--tokens 192]

Both answer the same prompts, in turn, each with its process warm; a prompt begins with words of its own, so
that neither has read it before. Of Dragoman the clock runs from the request to the last byte of the stream,
of the bare engine from the text to the last token: `whole` is all tokens by all that time, `writing` leaves
out the time to the first, in which Dragoman goes on with the generator of the answer before and the bare
engine makes one. Greedily, and with sampling. Fails where the median of the ratios of `writing`, the lower,
is below the target. A real model is made by `make real-model`; of a tiny one the engine takes less time than
any server.
"""

from __future__ import annotations

import argparse
import http.client
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import orjson

from providers.onnx.folder import ModelFolder, read_folder
from providers.onnx.template import render

from .processes import ROOT, Server, free_port

TARGET = 0.95
TEMPERATURES = (0.0, 0.7)
QUESTION = (
    "Story number {}: write a long story about a dragon who learns to cook for the people of a village."
)


@dataclass(frozen=True, slots=True)
class Took:
    """One answer; seconds."""

    prompt_tokens: int
    tokens: int
    seconds: float
    first: float

    @property
    def whole(self) -> float:
        return self.tokens / self.seconds

    @property
    def writing(self) -> float:
        return (self.tokens - 1) / (self.seconds - self.first)


class Raw:
    """The engine alone; a context manager."""

    def __init__(self, folder: ModelFolder) -> None:
        self._folder = folder

    def __enter__(self) -> Self:
        argv = [sys.executable, "-m", "bench.raw_genai", str(self._folder.path)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(argv, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
        self._line()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def ask(self, question: str, tokens: int, temperature: float) -> Took:
        text = render(
            self._folder.template or "",
            _messages(question),
            variables=self._folder.variables,
        )
        ask = {"text": text, "max_tokens": tokens, "temperature": temperature}
        assert self._process.stdin is not None
        self._process.stdin.write(orjson.dumps(ask) + b"\n")
        self._process.stdin.flush()
        return Took(**orjson.loads(self._line()))

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        if not (line := self._process.stdout.readline()):
            raise RuntimeError(f"the engine did not start: {self._folder.path}")
        return line


class Gateway:
    """Dragoman with the folder as its one provider; a context manager."""

    def __init__(self, folder: ModelFolder, place: Path) -> None:
        config = place / "local.toml"
        provider = f'[[providers]]\nname = "local"\nkind = "onnx"\npath = "{folder.path}"\n'
        config.write_text(provider + '[store]\nkind = "off"\n')
        command = str(Path(sys.executable).with_name("dragoman"))
        self._port, self._model = free_port(), f"local/{folder.name}"
        argv = [command, "serve", "--config", str(config), "--port", str(self._port)]
        self._server = Server(argv, self._port)

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.__exit__()

    def ask(self, question: str, tokens: int, temperature: float) -> Took:
        body: dict[str, Any] = {
            "model": self._model,
            "messages": _messages(question),
            "max_tokens": tokens,
            "temperature": temperature,
            "top_p": 0.95,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        connection = http.client.HTTPConnection("127.0.0.1", self._port)
        began = time.perf_counter()
        connection.request("POST", "/v1/chat/completions", orjson.dumps(body))
        reply, first, usage = connection.getresponse(), 0.0, {}
        for line in reply:
            if b'"content"' in line and not first and b'"content":""' not in line:
                first = time.perf_counter() - began
            if b'"prompt_tokens"' in line:
                usage = orjson.loads(line.removeprefix(b"data: "))["usage"]
        seconds = time.perf_counter() - began
        connection.close()
        if not usage:
            raise RuntimeError(f"no whole answer (status {reply.status})")
        return Took(usage["prompt_tokens"], usage["completion_tokens"], seconds, first)


def _messages(question: str) -> list[dict[str, str]]:
    """Templates may begin with a system message of their own: the same for all."""
    return [{"role": "system", "content": question}, {"role": "user", "content": "Begin."}]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--tokens", type=int, default=192)
    given = parser.parse_args()
    folder = read_folder(given.folder.absolute(), given.folder.name)
    if folder.reason is not None:
        raise SystemExit(folder.reason)
    worst = 1.0
    with tempfile.TemporaryDirectory() as place, Raw(folder) as raw, Gateway(folder, Path(place)) as gateway:
        for temperature in TEMPERATURES:
            worst = min(worst, measure(raw, gateway, given, temperature))
    return 0 if worst >= TARGET else 1


def measure(raw: Raw, gateway: Gateway, given: argparse.Namespace, temperature: float) -> float:
    """The median of the rounds' ratios."""
    rounds = []
    for number in range(given.rounds + 1):
        question = QUESTION.format(number)
        pair = [each.ask(question, given.tokens, temperature) for each in _in_turn(raw, gateway, number)]
        bare, through = pair if not number % 2 else pair[::-1]
        assert bare.prompt_tokens == through.prompt_tokens, "they read different prompts"
        if number:  # the first loads
            rounds.append((bare, through))
    found: dict[str, float] = {}
    for name in ("whole", "writing"):
        rates = [(getattr(bare, name), getattr(through, name)) for bare, through in rounds]
        found[name] = statistics.median(through / bare for bare, through in rates)
        bare, through = (statistics.median(side) for side in zip(*rates, strict=True))
        print(
            f"temperature {temperature:g}, {name:<7}: engine {bare:.1f} tokens/s, through Dragoman "
            f"{through:.1f}, ratio {found[name]:.3f}"
        )
    return found["writing"]


def _in_turn(raw: Raw, gateway: Gateway, number: int) -> tuple[Raw | Gateway, Raw | Gateway]:
    """Each goes first every other time: what else the machine does falls on both."""
    return (raw, gateway) if not number % 2 else (gateway, raw)


if __name__ == "__main__":
    sys.exit(main())
