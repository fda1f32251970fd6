"""An OAuth 2.0 token endpoint on 127.0.0.1 with TLS: signed tokens for client credentials."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs

from tests.certificates import Authority, openssl

AUDIENCE, ISSUER, KEY_ID = "kafka", "https://issuer.example.org", "one"
SECONDS = 600


class TokenEndpoint:
    """`issued` counts the tokens. `clients`: name -> secret; the name becomes the token's `sub`."""

    def __init__(self, authority: Authority, clients: dict[str, str]) -> None:
        self._folder, self._clients, self.issued = authority.folder, clients, 0
        openssl(self._folder, "genrsa", "-out", "token.key", "2048")
        modulus = openssl(self._folder, "rsa", "-noout", "-modulus", "-in", "token.key")
        number = bytes.fromhex(modulus.decode().strip().removeprefix("Modulus="))
        key = {"kty": "RSA", "kid": KEY_ID, "use": "sig", "alg": "RS256"}
        self.keys = self._folder / "jwks.json"
        self.keys.write_text(
            json.dumps({"keys": [{**key, "n": _base64(number), "e": "AQAB"}]}), encoding="utf-8"
        )
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*authority.issue("token-endpoint", "127.0.0.1"))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}/token"

    def answer(self, authorization: str, form: dict[str, list[str]]) -> tuple[int, dict[str, Any]]:
        """Status and document; 401 for a client that it does not know."""
        name, _, secret = (
            base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        )
        if self._clients.get(name) != secret or form.get("grant_type") != ["client_credentials"]:
            return 401, {"error": "invalid_client"}
        self.issued += 1
        return 200, {
            "access_token": self._token(name),
            "token_type": "Bearer",
            "expires_in": SECONDS,
        }

    def _token(self, subject: str) -> str:
        now = int(time.time())
        claims = {"sub": subject, "aud": AUDIENCE, "iss": ISSUER, "iat": now, "scope": "kafka"}
        parts = ({"alg": "RS256", "typ": "JWT", "kid": KEY_ID}, {**claims, "exp": now + SECONDS})
        signed = ".".join(_base64(json.dumps(part).encode()) for part in parts)
        signature = openssl(
            self._folder, "dgst", "-sha256", "-sign", "token.key", given=signed.encode()
        )
        return f"{signed}.{_base64(signature)}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(endpoint: TokenEndpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            status, document = endpoint.answer(
                self.headers.get("Authorization", ""), parse_qs(body)
            )
            content = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_arguments: object) -> None:
            pass

    return Handler


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
