"""Probes of the inventory: one for each group, asking the product itself whether it handles a name.

A probe raises KeyError for a name it has no sample for, which is how a new one is noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.contract.probes_chat import CHAT_PROBES
from tests.contract.probes_responses import RESPONSES_PROBES

PROBES: Mapping[str, Callable[[str], bool]] = {**CHAT_PROBES, **RESPONSES_PROBES}
"""Group -> whether the product handles a name of it."""
