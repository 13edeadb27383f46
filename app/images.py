"""Remote images put into the request itself, where the profile asks for it (`inline`).

Between planning and sending: the translators have written the body, no attempt has begun. An
image that cannot be had is a 400 at the client's own place for it, never left out.
"""

from __future__ import annotations

from providers.images import ImageError, Images
from translators.errors import bad_request, param_at
from translators.images import remote_images, with_images

from .payload import write_body
from .plan import Plan


async def inline_images(plan: Plan, images: Images) -> None:
    """Fetch what `plan` names by URL and write its payload anew; raises `ProxyError` (400)."""
    request, body = plan.request, plan.encoded.body
    if request.shape is None or plan.profile.messages.remote_images != "inline":
        return
    named = remote_images(body)
    if not named:
        return
    if not named.keys() <= request.images.keys():  # else another surface has asked for them
        try:
            if request.lost_image is not None:
                raise request.lost_image
            request.images |= await images.fetch(list(named))
        except ImageError as error:
            request.lost_image = error.with_traceback(None)  # which knows the request
            at = param_at({**named, **remote_images(request.body)}[error.url])
            message = (
                f"`{at}`: the image could not be fetched: {error.reason}. This model takes no image URLs; "
                "send the image itself as a `data:` URL."
            )
            raise bad_request(message, at, code="invalid_image_url") from error
    bare = {**with_images(body, request.images), "model": plan.target.model}
    plan.payload = write_body(bare, plan.target.provider)
