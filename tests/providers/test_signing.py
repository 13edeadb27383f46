"""Keeping a signature: when it is renewed, by whom, and what happens when that fails."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from providers.signing import Signature, Signer, bearer
from translators.errors import Kind, ProxyError


class Account:
    """Signs with `t1-xxxxxx`, `t2-xxxxxx`, ...; `steps` are what it does instead, in order."""

    def __init__(self, *steps: ProxyError | str, secrets: tuple[str, ...] = ()) -> None:
        self.now, self.steps = 0.0, list(steps)
        self.asked: list[bool] = []
        self.hold: asyncio.Event | None = None
        self.signer = Signer("p", self.sign, secrets, lambda: self.now)

    async def sign(self, anew: bool) -> Signature:
        self.asked.append(anew)
        if self.hold is not None:
            await self.hold.wait()
        await asyncio.sleep(0)
        step = self.steps.pop(0) if self.steps else f"t{len(self.asked)}-xxxxxx"
        if isinstance(step, ProxyError):
            raise step
        return Signature({"Authorization": f"Bearer {step}"}, renew_s=100, dies_s=200)


def failure(kind: Kind) -> ProxyError:
    return ProxyError(kind, "no")


def token(headers: Mapping[str, str] | None) -> str:
    return "" if headers is None else headers["Authorization"].removeprefix("Bearer ")


async def test_a_burst_waits_for_one_signature() -> None:
    account = Account()
    found = await asyncio.gather(*(account.signer.headers() for _ in range(50)))
    assert {token(each) for each in found} == {"t1-xxxxxx"}
    assert account.asked == [False]
    assert account.signer.fresh() is found[0]


async def test_it_is_renewed_behind_the_requests_and_dies_in_the_end() -> None:
    account = Account()
    await account.signer.headers()
    account.now = 99
    assert token(account.signer.fresh()) == "t1-xxxxxx"
    assert account.asked == [False]
    account.now = 100
    account.hold = asyncio.Event()
    assert [token(account.signer.fresh()) for _ in range(5)] == ["t1-xxxxxx"] * 5  # nobody waits
    account.hold.set()
    await asyncio.sleep(0.01)
    assert token(account.signer.fresh()) == "t2-xxxxxx"
    account.now = 300  # 200 s after the second was asked for
    assert account.signer.fresh() is None
    assert token(await account.signer.headers()) == "t3-xxxxxx"
    assert account.asked == [False] * 3


async def test_a_renewal_that_fails_leaves_the_old_one_in_use() -> None:
    account = Account("t1-xxxxxx", failure("upstream_auth"))
    await account.signer.headers()
    account.now = 150
    account.signer.fresh()
    await asyncio.sleep(0.01)
    assert token(account.signer.fresh()) == token(await account.signer.headers()) == "t1-xxxxxx"
    assert len(account.asked) == 2
    account.now = 161  # the refusal is forgotten
    account.signer.fresh()
    await asyncio.sleep(0.01)
    assert token(account.signer.fresh()) == "t3-xxxxxx"


FAILURES: list[tuple[Kind, float]] = [("upstream_auth", 10.0), ("upstream", 0.25), ("timeout", 0.25)]


@pytest.mark.parametrize(("kind", "pause"), FAILURES)
async def test_a_failure_is_told_to_all_and_soon_tried_again(kind: Kind, pause: float) -> None:
    account = Account(failure(kind), "t2-xxxxxx")
    told = await asyncio.gather(*(account.signer.headers() for _ in range(9)), return_exceptions=True)
    assert [(type(each), getattr(each, "kind", "")) for each in told] == [(ProxyError, kind)] * 9
    assert len({id(each) for each in told}) == 9  # each may be given words of its own
    account.now = pause - 0.01
    with pytest.raises(ProxyError):
        await account.signer.headers()
    assert len(account.asked) == 1
    account.now = pause
    assert token(await account.signer.headers()) == "t2-xxxxxx"


async def test_a_burst_of_refusals_is_one_renewal() -> None:
    account = Account()
    old = await account.signer.headers()
    found = await asyncio.gather(*(account.signer.instead_of(old) for _ in range(50)))
    assert {token(each) for each in found} == {"t2-xxxxxx"}
    assert token(await account.signer.instead_of(old)) == "t2-xxxxxx"  # a late one
    assert account.asked == [False, True]


async def test_a_renewal_under_way_serves_a_refusal_too() -> None:
    account = Account()
    old = await account.signer.headers()
    account.now = 150
    account.signer.fresh()
    assert token(await account.signer.instead_of(old)) == "t2-xxxxxx"
    assert account.asked == [False, False]


async def test_where_signing_in_again_changes_nothing_refusals_are_believed() -> None:
    account = Account("t1-xxxxxx", "t1-xxxxxx", "t3-xxxxxx")
    old = await account.signer.headers()
    assert await asyncio.gather(*(account.signer.instead_of(old) for _ in range(9))) == [None] * 9
    assert account.signer.fresh() is old
    account.now = 59
    assert await account.signer.instead_of(old) is None
    assert account.asked == [False, True]
    account.now = 60
    assert token(await account.signer.instead_of(old)) == "t3-xxxxxx"


async def test_where_the_new_one_is_refused_too_refusals_are_believed_for_a_minute() -> None:
    account = Account()
    new = await account.signer.instead_of(await account.signer.headers())
    assert new is not None
    account.signer.note_useless()
    account.now = 59
    assert await account.signer.instead_of(new) is None
    account.now = 60
    assert token(await account.signer.instead_of(new)) == "t3-xxxxxx"


async def test_a_renewal_that_fails_leaves_the_refusal_as_it_is() -> None:
    account = Account("t1-xxxxxx", failure("upstream"))
    old = await account.signer.headers()
    assert await account.signer.instead_of(old) is None


async def test_a_client_that_goes_away_takes_nobodys_token_with_it() -> None:
    account = Account()
    account.hold = asyncio.Event()
    first, second = (asyncio.create_task(account.signer.headers()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    account.hold.set()
    assert token(await second) == "t1-xxxxxx"
    assert account.asked == [False]


async def test_what_is_private_follows_the_tokens() -> None:
    account = Account(secrets=("the-secret", "short"))
    private = account.signer.private
    first = await account.signer.headers()
    assert private == ["the-secret", "t1-xxxxxx"]
    await account.signer.instead_of(first)
    assert private == ["the-secret", "t2-xxxxxx", "t1-xxxxxx"]
    account.now = 1000
    await account.signer.headers()
    assert private == ["the-secret", "t3-xxxxxx", "t2-xxxxxx"]
    assert account.signer.private is private


async def test_an_end_ends_what_is_under_way() -> None:
    account = Account()
    await account.signer.aclose()
    account.hold = asyncio.Event()
    waiting = asyncio.create_task(account.signer.headers())
    await asyncio.sleep(0)
    await account.signer.aclose()
    with pytest.raises(asyncio.CancelledError):
        await waiting


@pytest.mark.parametrize("value", ["", "a b", "a\nb", "\u00e9", "a\r\nX-Other: 1"])
def test_what_can_stand_in_no_header_is_no_token(value: str) -> None:
    with pytest.raises(ValueError, match="not a token"):
        bearer(value)


def test_a_signature_does_not_show_itself() -> None:
    assert "secret" not in repr(Signature({"Authorization": "Bearer secret"}, 1, 2))
