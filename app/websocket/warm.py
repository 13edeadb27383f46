"""A response without output (`generate: false`): what a client sends early, so as not to send it again.

No backend is asked. What was sent is remembered under the response's id, and the next request continues it.
"""

from __future__ import annotations

from collections.abc import Mapping

from translators.ir import Finished, Shape, Started, Usage
from translators.profile import Profile
from translators.stream import StreamTranslator

from ..calls import prepared, within_limits
from ..gateway import Gateway
from ..plan import BACKENDS, CLIENTS
from ..request import parse_request
from ..state.state import State
from ..stream import Client


async def warm(
    gateway: Gateway, shape: Shape, raw: bytes, headers: Mapping[bytes, bytes], client: Client, state: State
) -> None:
    """Answer the request that `raw` is; raises `ProxyError`, also for what no model could answer.

    It counts as one of its key's requests: else what may be written is without a bound.
    """
    async with within_limits(gateway, headers, client, raw):
        await _warmed(gateway, shape, raw, headers, client, state)


async def _warmed(
    gateway: Gateway, shape: Shape, raw: bytes, headers: Mapping[bytes, bytes], client: Client, state: State
) -> None:
    request = parse_request(shape, raw, headers, client.trace, gateway.seal_key)
    keeping = await prepared(request, headers, client, gateway, state)
    request.keeping = None  # which knows the request, as large as that may be: they would stay for a while
    call = request.call(CLIENTS[shape])
    route = gateway.router.route(request, headers, gateway.catalog)
    client.trace.target = route.targets[0].id
    encoder = CLIENTS[shape].encoder(call, request.context)
    reply = StreamTranslator(BACKENDS[shape].decoder(Profile()), encoder)
    client.expect(reply, client.trace.headers())
    await client.write(reply.take((Started(), Finished("stop", Usage()))), more=False)
    if keeping is not None and keeping.failure is not None:
        client.trace.error = keeping.failure
