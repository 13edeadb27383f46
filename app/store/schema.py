"""The tables, as the steps that led to them; both databases have the same.

A database says how many steps it has taken, and takes those that it lacks in one transaction. A step that has
been released is never changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

Database = Literal["sqlite", "postgres"]

_STEPS: Sequence[Sequence[str]] = (
    (
        "CREATE TABLE chains (id TEXT PRIMARY KEY, expires BIGINT NOT NULL)",
        "CREATE INDEX chains_expires ON chains (expires)",
        "CREATE TABLE responses (owner TEXT NOT NULL, id TEXT NOT NULL, chain TEXT NOT NULL, previous TEXT, "
        "created BIGINT NOT NULL, bytes BIGINT NOT NULL, input {blob} NOT NULL, response {blob} NOT NULL, "
        "PRIMARY KEY (owner, id))",
        # Its sum is read from this index alone, without the bodies.
        "CREATE INDEX responses_chain ON responses (chain, bytes)",
        "CREATE TABLE items (owner TEXT NOT NULL, item TEXT NOT NULL, response TEXT NOT NULL, "
        "chain TEXT NOT NULL, PRIMARY KEY (owner, item))",
        "CREATE INDEX items_chain ON items (chain, response)",
    ),
    (
        # Their ids are chains.
        "CREATE TABLE conversations (id TEXT PRIMARY KEY, owner TEXT NOT NULL, created BIGINT NOT NULL, "
        "bytes BIGINT NOT NULL, metadata {blob} NOT NULL)",
        "CREATE INDEX conversations_bytes ON conversations (id, bytes)",
        "CREATE TABLE conversation_items (chain TEXT NOT NULL, place BIGINT NOT NULL, item TEXT NOT NULL, "
        "turn TEXT NOT NULL, bytes BIGINT NOT NULL, body {blob} NOT NULL, PRIMARY KEY (chain, place))",
        "CREATE UNIQUE INDEX conversation_items_item ON conversation_items (item, chain)",
        "CREATE INDEX conversation_items_bytes ON conversation_items (chain, bytes)",
    ),
    (
        "CREATE TABLE runs (owner TEXT NOT NULL, id TEXT NOT NULL, chain TEXT NOT NULL, "
        "worker TEXT NOT NULL, lease BIGINT NOT NULL, ended INTEGER NOT NULL, "
        "last_number BIGINT NOT NULL, bytes BIGINT NOT NULL, PRIMARY KEY (owner, id))",
        "CREATE INDEX runs_chain ON runs (chain, bytes)",
        "CREATE INDEX runs_open ON runs (worker, lease) WHERE ended = 0",
        "CREATE TABLE run_events (owner TEXT NOT NULL, id TEXT NOT NULL, chain TEXT NOT NULL, "
        "first_number BIGINT NOT NULL, last_number BIGINT NOT NULL, data {blob} NOT NULL, "
        "PRIMARY KEY (owner, id, first_number))",
        "CREATE INDEX run_events_chain ON run_events (chain)",
    ),
    (
        "ALTER TABLE responses ADD COLUMN target TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE responses ADD COLUMN upstream TEXT NOT NULL DEFAULT ''",
    ),
)

NEWEST = len(_STEPS)

HELD = (
    "(SELECT chain, bytes FROM responses UNION ALL SELECT id AS chain, bytes FROM conversations "
    "UNION ALL SELECT chain, bytes FROM conversation_items UNION ALL SELECT chain, bytes FROM runs)"
)
"""What the chains hold, as a table: each sum over it is read from indexes alone."""
OF_CHAINS = (
    *(("items", "chain"), ("conversation_items", "chain"), ("conversations", "id")),
    *(("run_events", "chain"), ("runs", "chain"), ("responses", "chain"), ("chains", "id")),
)
"""Where chains are, with the column that names them, in the order in which they are taken out."""

_BLOB = {"sqlite": "BLOB", "postgres": "BYTEA"}


def steps_after(version: int, database: Database) -> list[str]:
    """What a database at `version` lacks, in order."""
    blob = _BLOB[database]
    return [statement.format(blob=blob) for step in _STEPS[version:] for statement in step]


def newer(version: int) -> str:
    """Why a database of a later program is not touched."""
    return f"it was made by a newer version of Dragoman (its schema is {version}, known are {NEWEST})"
