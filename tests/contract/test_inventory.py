"""The inventory: every name the newest SDK knows is really handled, or is listed with a reason.

A name that is new in the SDK has no sample and fails here; a listed one that has come to be
handled, or has gone from the SDK, fails too.
"""

from __future__ import annotations

import pytest

from tests.contract.inventory import UNSUPPORTED
from tests.contract.probes import PROBES
from tests.contract.sdk_types import KNOWN

NAMES = [(group, name) for group, names in sorted(KNOWN.items()) for name in sorted(names)]


@pytest.mark.parametrize(("group", "name"), NAMES)
def test_handled_or_listed(group: str, name: str) -> None:
    listed = UNSUPPORTED.get(group, {}).get(name)
    assert PROBES[group](name) == (listed is None), listed or "neither handled nor listed"


@pytest.mark.parametrize("group", UNSUPPORTED)
def test_nothing_listed_is_gone(group: str) -> None:
    assert set(UNSUPPORTED[group]) <= KNOWN[group]
    assert all(UNSUPPORTED[group].values())


def test_every_group_is_probed() -> None:
    assert set(PROBES) == set(KNOWN) >= set(UNSUPPORTED)


def test_a_new_name_is_noticed() -> None:
    with pytest.raises(KeyError):
        PROBES["chat request"]("brand_new_field")
    assert not PROBES["responses events"]("response.brand_new.delta")
    assert not PROBES["responses tools"]("brand_new_tool")
    assert not PROBES["responses input"]("brand_new_item")
