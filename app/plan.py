"""How one target is asked: the lane, the bytes that are sent, and how the reply finds back.

Lane *pass*: the backend is spoken to in the client's own shape and edits alone make the body
acceptable; the client's own bytes go out when nothing but the model's name changes. Lane
*translate*: everything else, also between equal shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from providers.base import SHAPE_OF, Surface, Target
from translators import chat, ollama, responses
from translators.budget import check_context
from translators.capsule import MARK, Seals, in_messages, without_capsules
from translators.chat.watch import ChatWatcher
from translators.chat.watch import tidy_reply as tidy_chat
from translators.dialect import BackendDialect, ClientDialect, Encoded, Loss, ReplyContext, ReplyStream
from translators.errors import ProxyError, bad_request, param_at
from translators.ir import Json, Shape, Usage
from translators.profile import Profile
from translators.rejections import Rejection, losses, without
from translators.responses.watch import ResponsesWatcher
from translators.responses.watch import tidy_reply as tidy_responses
from translators.translate import Translation, translate_request
from translators.unread import unread_keys

from . import embeddings
from .layers import check_merged
from .payload import with_model, write_body
from .repairs import orphan_refused
from .request import Request
from .state.links import FIELD, linked, mark, stored_there

Lane = Literal["pass", "translate"]

_MIB = 1 << 20

MAX_NAMED = 10
"""Losses named beside the first where none is wanted."""

CLIENTS: Mapping[Shape, ClientDialect] = {
    "chat": chat.ChatClient(),
    "responses": responses.ResponsesClient(),
}
BACKENDS: Mapping[Shape, BackendDialect] = {
    "chat": chat.ChatBackend(),
    "responses": responses.ResponsesBackend(),
    "ollama": ollama.OllamaBackend(),
}
WATCHERS: Mapping[Shape, Callable[[Profile, ReplyContext], ReplyStream]] = {
    "chat": ChatWatcher,
    "responses": ResponsesWatcher,
}
"""What looks after a stream that passes."""

TIDY: Mapping[Surface, Callable[[Json, Profile], tuple[Json, Usage | None]]] = {
    "chat": tidy_chat,
    "responses": tidy_responses,
    "open_responses": tidy_responses,
    "embeddings": embeddings.tidy_reply,
}
"""What looks after a body that passes: the same object when nothing in it is odd, and its usage."""


@dataclass(slots=True)
class Plan:
    """One way to have a request answered: a target's surface and the bytes for it."""

    request: Request
    target: Target
    surface: Surface
    profile: Profile
    lane: Lane
    encoded: Encoded
    payload: bytes
    stream: bool
    """Whether the backend is asked for a stream."""
    translation: Translation | None = None
    left_out: list[Rejection] = field(default_factory=list)
    """What this backend is known to refuse, and what it refused of this request since."""
    refused: list[Rejection] = field(default_factory=list)
    """The latter, until the backend has answered without it."""
    rounds: int = 0
    """Refusals that were answered by leaving fields out."""
    stored_there: bool = False
    """Whether the backend stores the answer, so that it can be asked to go on from it."""
    link: str | None = None
    """The backend's response that it is asked to go on from."""
    whole: Request | None = None
    """The request of which `request` then is what is new."""
    unsealed: bool = False
    """Whether reasoning was left out because the backend could not use it."""

    @property
    def context(self) -> ReplyContext:
        """What a reply of this target is made with."""
        private = self.target.provider.private
        return replace(self.request.context, seals=_seals(self.request, self.target), private=private)

    @property
    def backend(self) -> BackendDialect:
        """The shape that the target is spoken to in; not for embeddings."""
        return BACKENDS[SHAPE_OF[self.surface]]

    def translate(self) -> Translation:
        """The way back to the client; in the pass lane, between equal shapes, made on demand."""
        if self.translation is None:
            shape, request = SHAPE_OF[self.surface], self.request
            client, backend, call = CLIENTS[shape], BACKENDS[shape], request.call(CLIENTS[shape])
            self.translation = Translation(call, self.encoded, client, backend, self.profile, {})
        return self.translation


def make_plan(request: Request, target: Target, surface: Surface) -> Plan:
    """Plan `request` for one surface; raises `ProxyError` for what it cannot carry."""
    profile = target.provider.profile(target.model, surface, request.overrides)
    if profile.wire.chaining is None or request.shape is None:
        return _planned(request, target, surface, profile, None)
    stored = stored_there(request, profile, surface)
    part = linked(request, target, CLIENTS["responses"]) if stored else None
    if part is not None:
        plan = _planned(part[0], target, surface, profile, True)
        plan.link = plan.encoded.body.get(FIELD)
        if plan.link is not None:  # else the backend is known to refuse the field
            plan.encoded.repairs += part[1]
            plan.whole = request
            return plan
    return _planned(request, target, surface, profile, stored)


def _planned(
    request: Request, target: Target, surface: Surface, profile: Profile, stored: bool | None
) -> Plan:
    """`stored`: what the backend is told of storing its answer, None: what the client says."""
    if request.overrides:
        check_merged(profile)
    if request.shape is None:
        embeddings.check_request(request.body)
        return _passed(request, target, surface, profile, Encoded(request.body, changed=False))
    if not profile.tools.supported:
        _refuse_tools(request)
    backend = BACKENDS[SHAPE_OF[surface]]
    learns = profile.request.learn_rejections and not request.strict
    known = target.provider.known_rejections(target.model, surface) if learns else ()
    body, sealed = request.body, list[Loss]()
    if MARK in request.raw and backend.name == "responses" == request.shape:
        body, sealed = without_capsules(body)
    if backend.name == request.shape and _passes(request, body, backend, profile):
        CLIENTS[request.shape].check(body)
        encoded, translation = backend.edit_request(body, profile), None
        encoded.changed = encoded.changed or body is not request.body
        encoded.losses[:0] = sealed
    else:
        translation = _translation(request, target, CLIENTS[request.shape], backend, profile)
        encoded = translation.encoded
    mark(encoded, stored, surface, profile)
    _leave_out_known(known, encoded, request, backend.name)
    if translation is None:
        plan = _passed(request, target, surface, profile, encoded)
    else:
        plan = _translated(request, target, surface, profile, translation)
    plan.left_out += known
    plan.stored_there = stored is True and plan.encoded.body.get("store") is True
    if request.strict:
        _refuse_changes(plan.encoded, request)
    return plan


def _passes(request: Request, body: Json, backend: BackendDialect, profile: Profile) -> bool:
    """Whether edits are enough where client and backend speak the same shape."""
    return (
        request.context.previous is None  # its reply has to name what it continues
        and request.context.conversation is None
        and not profile.answer.continuations
        and backend.passes(body, profile)
        and not _holds_capsule(request)
    )


def _translation(
    request: Request, target: Target, client: ClientDialect, backend: BackendDialect, profile: Profile
) -> Translation:
    """With what the client sent and no backend was told among the losses, unless the gateway does it."""
    translation = translate_request(request.call(client), client, backend, profile, _seals(request, target))
    lost = translation.encoded.losses
    lost += unread_keys(request.body, client.name, backend.name)
    if request.context.stored or request.body.get("truncation") == "auto":  # done here
        translation.encoded.losses = [loss for loss in lost if not _done_here(loss, request)]
    return translation


def _done_here(loss: Loss, request: Request) -> bool:
    """Whether the gateway does what a backend was not told."""
    if loss.pointer == "/truncation":
        return request.shape == "responses"  # to Chat clients the word is foreign
    return loss.pointer == "/store" and request.context.stored


def _holds_capsule(request: Request) -> bool:
    """Whether a Chat body has to be read for the sake of its capsules: only a translation opens them."""
    return MARK in request.raw and request.shape == "chat" and in_messages(request.body)


def _refuse_changes(encoded: Encoded, request: Request) -> None:
    lost = [loss for loss in encoded.losses if loss.kind != "policy"]
    if lost:
        raise _refused_loss(lost)
    orphan = orphan_refused(encoded.repairs, request.body, request.shape) if request.shape else None
    if orphan is not None:
        raise orphan


def _refuse_tools(request: Request) -> None:
    param = next((key for key in ("tools", "functions") if request.body.get(key)), None)
    if param is not None:
        message = (
            f"model {request.model} does not support function tools: leave them out, or use another model"
        )
        raise bad_request(message, param, code="unsupported_parameter")


def _seals(request: Request, target: Target) -> Seals | None:
    """Capsules are for the one target that gave what is in them."""
    seals = request.context.seals
    return None if seals is None else replace(seals, target=target.id)


def check_size(plan: Plan, window: int | None = None) -> None:
    """Refuse (413, 400) what the backend is known to refuse by its size, before it is sent there.

    `window`: the tokens that its model takes, as listed.
    """
    limit, size = plan.profile.request.max_body_bytes, len(plan.payload)
    if limit is not None and size > limit:
        raise too_large(plan)
    param = "messages" if plan.request.shape == "chat" else "input"
    check_context(plan.payload, plan.profile.request, window, param)


def too_large(plan: Plan, advice: str = "") -> ProxyError:
    """The 413 with both sizes; `advice` goes on its last sentence."""
    limit = plan.profile.request.max_body_bytes or 0
    message = (
        f"the request is {len(plan.payload) / _MIB:.1f} MiB as sent to {plan.target.id}, "
        f"which takes {limit / _MIB:.1f} MiB at most; "
        f"send smaller or fewer images and files, or a shorter history{advice}"
    )
    return ProxyError("too_large", message)


def _passed(request: Request, target: Target, surface: Surface, profile: Profile, encoded: Encoded) -> Plan:
    if encoded.changed:
        encoded.body["model"] = target.model
        payload = write_body(encoded.body, target.provider)
    elif target.provider.extra_body is not None:
        payload = write_body({**encoded.body, "model": target.model}, target.provider)
    else:
        payload = with_model(request.raw, request.body, target.model)
    return Plan(request, target, surface, profile, "pass", encoded, payload, request.stream)


def _translated(
    request: Request, target: Target, surface: Surface, profile: Profile, translation: Translation
) -> Plan:
    encoded = translation.encoded
    encoded.body["model"] = target.model
    payload, stream = write_body(encoded.body, target.provider), encoded.body.get("stream") is True
    return Plan(request, target, surface, profile, "translate", encoded, payload, stream, translation)


def _leave_out_known(known: Sequence[Rejection], encoded: Encoded, request: Request, shape: Shape) -> None:
    body, lost = leave_out(known, encoded.body, request, shape)
    if body is not encoded.body:
        encoded.body, encoded.changed = body, True
        encoded.losses += lost


def leave_out(
    rejections: Sequence[Rejection], body: Json, request: Request, shape: Shape
) -> tuple[Json, list[Loss]]:
    """`body`, of the backend's `shape`, as the backend takes it, and what the client loses by that."""
    lost: list[Loss] = []
    for each in rejections:
        less = without(body, each)
        if less is not body:
            body = less
            lost += losses(each, request.body, request.shape or shape, shape)
    return body, lost


def _refused_loss(losses: Sequence[Loss]) -> ProxyError:
    """The first loss with its reason, and where the next ones are, so that all can be mended at once."""
    first, *others = losses
    param = param_at(first.pointer)
    places = list(dict.fromkeys(param_at(loss.pointer) for loss in others if loss.pointer != first.pointer))
    also = f"; also {', '.join(places[:MAX_NAMED])}" if places else ""
    more = f" and {len(places) - MAX_NAMED} more" if len(places) > MAX_NAMED else ""
    message = (
        f"{param} would be left out ({first.reason}){also}{more}; x-dragoman-strict forbids that: "
        "leave it out yourself, or send the request without that header"
    )
    return bad_request(message, param, code="unsupported_parameter")
