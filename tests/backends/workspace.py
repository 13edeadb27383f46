"""A Databricks workspace on loopback: its token endpoint, its lists, and chat behind both."""

from __future__ import annotations

import base64
import time
from typing import Any
from urllib.parse import parse_qs

from . import replies
from .loopback import Loopback, OnLoopback, Reply, Request
from .scripted import plain_reply

CLIENT_ID, CLIENT_SECRET = "principal-1", "dose-very-secret-0123456789"
_BASIC = "Basic " + base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()


class Workspace(OnLoopback):
    """Use it as a context manager; attributes may be changed while it serves.

    Only tokens of `valid` are taken. The token endpoint issues `token-1-...`, `token-2-...` and takes
    the service principal above; `token_reply`, when set, is what it answers instead.
    """

    def __init__(self) -> None:
        self.valid: set[str] = set()
        self.issued: list[str] = []
        self.expires_in: Any = 3600
        self.token_reply: Reply | None = None
        self.token_pause_s = 0.0
        self.refusal = 401
        self.forbidden: set[str] = set()
        """Models that no token may use: 403."""
        self.endpoints: list[dict[str, Any]] = [{"name": "databricks-claude-x", "task": "llm/v1/chat"}]
        self.lists: dict[str, Any] = {}
        """Bodies at other paths."""
        self.services: dict[str, Reply] = {}
        """Pages of model services by their `page_token`; without any there is no gateway: 404."""
        self.server = Loopback(self._answer)

    def asked(self, part: str) -> list[Request]:
        """The requests so far whose path holds `part`."""
        return [request for request in self.server.requests if part in request.path]

    def expire(self) -> None:
        """All tokens issued so far are no longer good."""
        self.valid.clear()

    def _answer(self, request: Request) -> Reply:
        if request.path == "/oidc/v1/token":
            return self._token(request)
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if token not in self.valid:
            message = (
                f"Invalid Token {token}" if self.refusal == 403 else f"Credential {token} was not accepted"
            )
            return replies.json_reply({"error_code": self.refusal, "message": message}, self.refusal)
        return self._granted(request)

    def _granted(self, request: Request) -> Reply:
        path, _, query = request.path.partition("?")
        if path == "/api/2.0/serving-endpoints":
            return replies.json_reply({"endpoints": self.endpoints})
        if path == "/api/2.1/unity-catalog/model-services":
            page = parse_qs(query).get("page_token", [""])[0]
            return self.services.get(page) or replies.json_reply({"error_code": "NOT_FOUND"}, 404)
        if path in self.lists:
            return replies.json_reply(self.lists[path])
        if request.method != "POST":
            return replies.json_reply({"error_code": "ENDPOINT_NOT_FOUND"}, 404)
        body = request.json
        if body.get("model") in self.forbidden:
            return replies.json_reply({"error_code": "PERMISSION_DENIED", "message": "You may not."}, 403)
        return plain_reply(path, body)

    def _token(self, request: Request) -> Reply:
        time.sleep(self.token_pause_s)
        if self.token_reply is not None:
            return self.token_reply
        form = parse_qs(request.body.decode())
        if form != {"grant_type": ["client_credentials"], "scope": ["all-apis"]}:
            return replies.json_reply({"error": "unsupported_grant_type"}, 400)
        if request.headers.get("authorization") != _BASIC:
            words = f"Client authentication failed: {CLIENT_SECRET}"
            return replies.json_reply({"error": "invalid_client", "error_description": words}, 401)
        token = f"token-{len(self.issued) + 1}-abcdefgh"
        self.issued.append(token)
        self.valid.add(token)
        body = {"access_token": token, "token_type": "Bearer", "expires_in": self.expires_in}
        return replies.json_reply({key: value for key, value in body.items() if value is not None})
