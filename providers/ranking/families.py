"""What a model's name says of it where nobody publishes scores: its class, and what it is for. Data.

A key is the words that must all stand in a name as whole segments: `gpt-5-prod` is no `gpt pro`, an
11b no `1b`, Gemini no `mini`. The key with most words wins, of equally long ones the later (so brands
come first); keys of the configuration go before all of these. NEVER keeps a family from being picked
for a class.

Where a maker sells tiers, the top one is chat-thinking, the small one chat-fast. Of open weights the
usual size decides. A variant whose tier its name doesn't tell (`gpt-5.6-sol`) is what its family is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

ModelClass = Literal["chat-thinking", "chat-balanced", "chat-fast", "embedding"]
Task = Literal["chat", "embedding", "other"]
FamilyClass = Literal["chat-thinking", "chat-balanced", "chat-fast", "never"]

NEVER: FamilyClass = "never"

_BALANCED = """
claude, sonnet
gpt, chatgpt, codex, gpt oss 120b
gemini, gemini flash
llama, llama 70b, qwen, qwq, qvq
deepseek, deepseek chat, deepseek r1 distill
mistral, mistral medium, magistral small, devstral, mixtral, pixtral
glm, grok, kimi, minimax, mimo, ernie, hunyuan, jamba, exaone, hermes, dbrx, yi
command, nova, nova pro, nemotron, nemotron super, sonar, phi reasoning, olmo think
"""
_FAST = """
claude instant, haiku
gpt mini, gpt nano, codex mini, gpt oss, o1 mini, o3 mini, o4 mini
gemini flash lite, gemini nano, gemma
llama 1b, llama 3b, llama 8b, codellama, tinyllama
qwen turbo, qwen flash, qwen 0.5b, qwen 0.6b, qwen 1.5b, qwen 1.7b, qwen 2b, qwen 3b, qwen 4b, qwen 7b
qwen 8b, qwen 9b
deepseek r1 distill 1.5b, deepseek r1 distill 7b, deepseek r1 distill 8b, deepseek 1.5b, deepseek 7b
deepseek 8b
mistral small, mistral nemo, mistral tiny, mistral 7b, ministral, devstral small, codestral
glm air, glm flash, glm 9b, grok mini, grok fast, grok code, kimi vl, minimax lightning, mimo flash
mimo 7b, ernie speed, ernie lite, jamba mini, yi lightning
command light, command r7b, nova lite, nova micro, nemotron nano
phi, granite, lfm, olmo, smollm, falcon, aya
"""
_THINKING = """
opus, fable, mythos
gpt pro, codex max, o1, o3, o4
gemini pro, gemini ultra, gemini deep think
llama maverick, llama behemoth, llama 405b
qwen max
deepseek r1, deepseek reasoner, deepseek speciale
mistral large, magistral, magistral medium
grok heavy, kimi thinking, command reasoning, nova premier, nemotron ultra, sonar reasoning
"""
_NEVER = "deep research, computer use, search preview, gpt instruct, gpt cyber, gpt rosalind"
"""Made for one thing, or with an API of their own."""


def _keys(text: str) -> list[str]:
    return [key.strip() for line in text.strip().splitlines() for key in line.split(",")]


FAMILIES: Mapping[str, FamilyClass] = MappingProxyType(
    {
        **dict.fromkeys(_keys(_BALANCED), "chat-balanced"),
        **dict.fromkeys(_keys(_FAST), "chat-fast"),
        **dict.fromkeys(_keys(_THINKING), "chat-thinking"),
        **dict.fromkeys(_keys(_NEVER), NEVER),
    }
)
"""Words of a name -> class."""

_EMBEDDINGS = "embed embedding embeddings bge gte e5 minilm nomic mxbai voyage ada"
_OTHERS = """
image imagen dall sora veo lyria whisper tts transcribe audio realtime moderation guard shieldgemma rerank
reranker babbage davinci
"""
TASKS: Mapping[str, Task] = MappingProxyType(
    {**dict.fromkeys(_EMBEDDINGS.split(), "embedding"), **dict.fromkeys(_OTHERS.split(), "other")}
)
"""Words of a name -> what the model is for, where its listing doesn't say: OpenAI's lists pictures and
speech beside chat. The first such word in the name decides."""

FAST_UP_TO = 22e9
"""Parameters up to which a model is chat-fast: it fits one consumer GPU with room for context. The border
lies between gpt-oss-20b (20.9e9) and Mistral Small (23.6e9)."""

THINKING_FROM: Mapping[bool | None, float] = MappingProxyType({True: 120e9, None: 200e9, False: 400e9})
"""Parameters from which a model is chat-thinking, by whether it reasons (None: unknown). Between gpt-oss-120b
(116.8e9, balanced by its family) and Qwen3-235B; without reasoning only what Llama 405b is."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A family: words that a name holds, and the class of such models."""

    words: tuple[str, ...]
    value: FamilyClass
    configured: bool
    """Whether the configuration says so."""
    place: int

    @property
    def key(self) -> str:
        return " ".join(self.words)


class FamilyRules:
    """FAMILIES with a configuration's own entries, ready to be asked.

    Raises `ValueError`, naming the key, for a key without words or a value that is no class of chat models.
    """

    def __init__(self, overrides: Mapping[str, str] | None = None) -> None:
        table: dict[tuple[str, ...], tuple[FamilyClass, bool]] = {
            tuple(key.split()): (value, False) for key, value in FAMILIES.items()
        }
        for key, text in (overrides or {}).items():
            words = tuple(key.lower().split())
            table.pop(words, None)
            table[words] = _checked(key, text), True
        self._by_first: dict[str, list[Rule]] = {}
        for place, (words, (value, configured)) in enumerate(table.items()):
            self._by_first.setdefault(words[0], []).append(Rule(words, value, configured, place))

    def find(self, segments: tuple[str, ...]) -> Rule | None:
        """The family that a name falls under; None: none is known to it."""
        held = frozenset(segments)
        rules = (rule for first in held & self._by_first.keys() for rule in self._by_first[first])
        fitting = (rule for rule in rules if held.issuperset(rule.words))
        return max(fitting, key=lambda rule: (rule.configured, len(rule.words), rule.place), default=None)


def _checked(key: str, value: str) -> FamilyClass:
    if not key.split():
        raise ValueError("a family needs at least one word of a model's name")
    known: dict[str, FamilyClass] = {each: each for each in get_args(FamilyClass)}
    if value not in known:
        raise ValueError(f"family {key!r}: {value!r} is none of {', '.join(known)}")
    return known[value]
