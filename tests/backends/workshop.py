"""What the long task needs around a client: three MCP servers, a picture, an output schema."""

from __future__ import annotations

import base64
import struct
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

Json = dict[str, Any]
SERVER = Path(__file__).with_name("mcp_server.py")

SHELF: Json = {
    "type": "object",
    "properties": {"shelf": {"type": "integer"}, "unit": {"type": ["string", "null"], "default": None}},
    "required": ["shelf"],
}
ODD_SCHEMA: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "shape": {"$ref": "#/$defs/Shape"},
        "$special": {"type": "string", "x-unknown-keyword": {"deep": True}},
        "a.b": {
            "type": "array",
            "items": {"anyOf": [{"type": "integer"}, {"type": "boolean"}, {"type": "null"}]},
        },
        "nested": {"$ref": "#/$defs/Nested"},
    },
    "required": ["shape"],
    "additionalProperties": False,
    "$defs": {
        "Shape": {
            "oneOf": [
                {"type": "object", "properties": {"kind": {"const": "round"}, "radius": {"type": "number"}}},
                {"type": "object", "properties": {"kind": {"const": "square"}, "side": {"type": "number"}}},
            ],
            "discriminator": {"propertyName": "kind"},
        },
        "Nested": {"type": "object", "properties": {"again": {"$ref": "#/$defs/Nested"}}},
    },
}
"""References, one of them to itself, unions, keywords of other drafts and keys that are no identifiers."""

OUTPUT_SCHEMA: Json = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}


def picture(red: int, size: int = 8) -> bytes:
    """A PNG of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        whole = kind + data
        return struct.pack(">I", len(data)) + whole + struct.pack(">I", zlib.crc32(whole))

    head = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    rows = (b"\0" + bytes([red, 40, 80]) * size) * size
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


_STORE = "fetch_what_is_kept_on_a_shelf_of_this_store"
SERVERS: dict[str, list[Json]] = {
    "warehouse_of_the_northern_district_annex": [
        {
            "name": _STORE,
            "description": "Reads the north store.",
            "inputSchema": SHELF,
            "text": "north shelf {shelf}",
        },
        {
            "name": "describe.odd-shapes",
            "description": "Takes odd shapes.",
            "inputSchema": ODD_SCHEMA,
            "text": "odd shapes understood: {all}",
        },
    ],
    "warehouse_of_the_southern_district_annex": [
        {
            "name": _STORE,
            "description": "Reads the south store.",
            "inputSchema": SHELF,
            "text": "south shelf {shelf}",
        },
    ],
    "bench": [
        {
            "name": "photograph",
            "description": "Takes a picture of the bench.",
            "inputSchema": {"type": "object", "properties": {"zoom": {"type": "integer"}}},
            "text": "bench at zoom {zoom}",
            "image": base64.b64encode(picture(200)).decode(),
        },
        {
            "name": "no_arguments",
            "description": "Does nothing.",
            "inputSchema": {"type": "object"},
            "text": "nothing",
        },
    ],
}
"""Two servers have a tool of one name; with the server's name it is longer than 64 characters."""


@dataclass(frozen=True, slots=True)
class Workshop:
    """The files of it, in a folder of their own."""

    folder: Path

    def build(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, tools in SERVERS.items():
            (self.folder / f"{name}.json").write_bytes(orjson.dumps(tools))
        (self.folder / "pic.png").write_bytes(picture(90))
        self.schema.write_bytes(orjson.dumps(OUTPUT_SCHEMA))

    @property
    def picture(self) -> Path:
        return self.folder / "pic.png"

    @property
    def schema(self) -> Path:
        return self.folder / "schema.json"

    def command(self, name: str) -> list[str]:
        """What starts a server."""
        return [sys.executable, str(SERVER), str(self.folder / f"{name}.json"), str(self._log(name))]

    def calls(self, name: str) -> list[Json]:
        """What a server was asked, in order: `{tool, arguments}`."""
        log = self._log(name)
        return [orjson.loads(line) for line in log.read_bytes().splitlines()] if log.exists() else []

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"
