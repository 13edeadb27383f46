"""`background: true` on create: what is wrong with the request is told at once, all else the run tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import orjson

from translators.responses.snapshot import snapshot

from ..context.compaction import before_trigger
from ..errors import JSON
from ..ids import new_id
from ..pipeline import plan_ahead
from ..plan import CLIENTS, Plan
from ..request import Request
from ..stream import Client
from ..telemetry.trace import Headers, Trace
from ..telemetry.watch import onward
from .background import Answer
from .followers import follow
from .run_log import RunLog
from .state import Keeping

if TYPE_CHECKING:
    from ..access.limits import Place
    from ..gateway import Gateway

ROUTE = "RUN /v1/responses"
"""How the log calls what a run does, which has the same request id as the request for it."""


def is_background(request: Request, keeping: Keeping | None, gateway: Gateway) -> bool:
    """Whether it is for the background and can be; else what checks requests refuses `background`."""
    body = request.body
    return keeping is not None and body.get("background") is True and gateway.state is not None


async def begin_run(
    gateway: Gateway,
    request: Request,
    headers: Mapping[bytes, bytes],
    client: Client,
    answer: Answer,
    place: Place | None,
) -> None:
    """Answer with the response as it is queued, or with the events of the run; raises `ProxyError`.

    `place`: the request's among those of its key; the run has it until it ends.
    """
    keeping, state = request.keeping, gateway.state
    assert keeping is not None  # noqa: S101 - `is_background`
    assert state is not None  # noqa: S101 - likewise
    client.on_end = None
    asked = _asked(request, client.trace)
    CLIENTS["responses"].check(asked.body)
    route = gateway.router.route(asked, headers, gateway.catalog)
    head = _head(client.trace, plan_ahead(before_trigger(asked), route.targets))
    queued = {**snapshot(request.context, new_id("resp_")), "status": "queued", "background": True}
    log = RunLog(queued)
    run = await gateway.background.begin(state, asked, keeping, answer, log)
    if place is not None:
        run.on_over = place.pass_on()
    if request.stream:
        await follow(gateway.background, state, run.key, -1, client, head)
    else:
        await client.whole(200, [JSON, *head], orjson.dumps(queued))


def _head(trace: Trace, plan: Plan) -> Headers:
    """The answer's headers, with what the run will leave out; that is the run's, and counted there."""
    trace.target = plan.target.id
    trace.losses, trace.repairs = plan.encoded.losses, plan.encoded.repairs
    head = trace.headers()
    trace.losses, trace.repairs = (), ()
    return head


def _asked(request: Request, trace: Trace) -> Request:
    """What a backend is asked: a stream, whatever the client wants to get."""
    body = {key: value for key, value in request.body.items() if key != "background"}
    body["stream"] = True
    own = Trace(trace.id, ROUTE, key=trace.key, model=trace.model, stream=True)
    own.arrival = onward(trace)
    context = replace(request.context, stream=True)
    return replace(request, body=body, raw=orjson.dumps(body), trace=own, context=context, decoded=None)
