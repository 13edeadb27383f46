"""A small MCP server over stdio, its tools from a file: no dependency, one JSON-RPC message a line.

    python mcp_server.py TOOLS.json LOG.jsonl

`TOOLS.json` is a list of `{name, description, inputSchema, text, image?}`. A call is answered
with `text`, in which `{shelf}` is the argument and `{all}` is all of them, and with the picture
(base64 PNG) if there is one. Every call is appended to the log before it is answered.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

Json = dict[str, Any]


def answer(request: Json, tools: dict[str, Json], log: Path) -> Json:
    """The result of one request; KeyError for a method or tool that is not there."""
    method, params = request["method"], request.get("params") or {}
    if method == "initialize":
        info = {"name": "long-task", "version": "1"}
        version = params.get("protocolVersion", "2025-06-18")
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        public = ("name", "description", "inputSchema")
        return {"tools": [{key: tool[key] for key in public} for tool in tools.values()]}
    if method == "tools/call":
        return _call(tools[params["name"]], params, log)
    return {"ping": {}}[method]


def _call(tool: Json, params: Json, log: Path) -> Json:
    arguments = params.get("arguments") or {}
    with log.open("a", encoding="utf-8") as out:
        out.write(json.dumps({"tool": tool["name"], "arguments": arguments}) + "\n")
    content = [{"type": "text", "text": tool["text"].format(**_told(arguments))}]
    if "image" in tool:
        content.append({"type": "image", "data": tool["image"], "mimeType": "image/png"})
    return {"content": content, "isError": False}


def _told(arguments: Json) -> Json:
    """What the text may speak of: each argument that is a plain name, and `all` of them."""
    plain = {key: value for key, value in arguments.items() if key.isidentifier()}
    return {**plain, "all": json.dumps(arguments, sort_keys=True, ensure_ascii=False)}


def main() -> None:
    listed, log = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), Path(sys.argv[2])
    tools = {tool["name"]: tool for tool in listed}
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        reply: Json = {"jsonrpc": "2.0", "id": request["id"]}
        try:
            reply["result"] = answer(request, tools, log)
        except KeyError as missing:
            reply["error"] = {"code": -32601, "message": f"there is no {missing}"}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
