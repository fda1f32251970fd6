"""An OAuth 2.0 token endpoint on 127.0.0.1 with TLS: signed tokens for client credentials."""

from __future__ import annotations

import base64
import json
import time
from http.server import ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from tests.certificates import Authority, openssl
from tests.http_server import Handler, use_tls

AUDIENCE, ISSUER, KEY_ID = "kafka", "https://issuer.example.org", "one"
SECONDS = 600


class TokenEndpoint(ThreadingHTTPServer):
    """`issued` counts the tokens. `clients`: name -> secret; the name becomes the token's `sub`."""

    def __init__(self, authority: Authority, clients: dict[str, str]) -> None:
        super().__init__(("127.0.0.1", 0), _Tokens)
        self._folder, self._clients, self.issued = authority.folder, clients, 0
        openssl(self._folder, "genrsa", "-out", "token.key", "2048")
        modulus = openssl(self._folder, "rsa", "-noout", "-modulus", "-in", "token.key")
        number = bytes.fromhex(modulus.decode().strip().removeprefix("Modulus="))
        key = {"kty": "RSA", "kid": KEY_ID, "use": "sig", "alg": "RS256"}
        self.keys = self._folder / "jwks.json"
        self.keys.write_text(
            json.dumps({"keys": [{**key, "n": _base64(number), "e": "AQAB"}]}), encoding="utf-8"
        )
        use_tls(self, authority, "token-endpoint")
        self.url = f"https://127.0.0.1:{self.server_port}/token"

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


class _Tokens(Handler):
    server: TokenEndpoint

    def do_POST(self) -> None:
        form = parse_qs(self.body().decode())
        status, document = self.server.answer(self.headers.get("Authorization", ""), form)
        content = json.dumps(document).encode()
        self.reply(status, content, **{"Content-Type": "application/json"})


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
