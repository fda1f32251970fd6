"""Tokens come from the endpoint or the file, and no failure shows a secret."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import HTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.errors import SaslAuthenticationFailedError
from kafka.net.sasl.oauth import SaslMechanismOAuth

from tests.http_server import Handler, serving
from tidemark.core.errors import ConfigError
from tidemark.kafka import oauth
from tidemark.kafka.oauth import with_token_provider
from tidemark.kafka.options import client_options
from tidemark.settings import Connection

SECRET = "hunter2"
BASE = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"}


@contextmanager
def endpoint(status: int, body: bytes) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Its URL, and the (Authorization, form) of each request."""
    seen: list[tuple[str, str]] = []

    class Endpoint(Handler):
        def do_POST(self) -> None:
            seen.append((self.headers["Authorization"], self.body().decode()))
            self.reply(status, body, Location="http://127.0.0.1:1/")

    with serving(HTTPServer(("127.0.0.1", 0), Endpoint)) as server:
        yield f"http://127.0.0.1:{server.server_port}/token", seen


def provider(folder: Path, url: str) -> Any:
    secret = folder / "secret"
    secret.write_text(SECRET + "\n")
    client = {
        **BASE,
        "sasl_oauth_token_url": url,
        "sasl_oauth_client_id": "tidemark",
        "sasl_oauth_client_secret_file": str(secret),
        "sasl_oauth_scope": "kafka",
    }
    options = with_token_provider(client_options(Connection(client=client)))
    assert not set(oauth.OPTIONS) & options.keys()
    return options["sasl_oauth_token_provider"]


def test_a_token_is_asked_for_once_in_its_life(tmp_path: Path) -> None:
    with endpoint(200, b'{"access_token": "abc", "expires_in": 600}') as (url, seen):
        found = provider(tmp_path, url)
        assert [found.token(), found.token()] == ["abc", "abc"]
        found._renew_at = 0.0
        (tmp_path / "secret").write_text("another")
        found.token()
    assert [form for _, form in seen] == ["grant_type=client_credentials&scope=kafka"] * 2
    assert seen[0][0] == "Basic dGlkZW1hcms6aHVudGVyMg=="
    assert seen[1][0] != seen[0][0]


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (401, b"hunter2", "answered HTTP 401"),
        (302, b"", "answered HTTP 302"),
        (200, b"{}", "has no access_token"),
        (200, b'{"access_token": "a\\nb"}', "has no access_token"),
        (200, b"[" * 100_000, "has no access_token"),
    ],
)
def test_a_failure_is_one_line(tmp_path: Path, status: int, body: bytes, says: str) -> None:
    with endpoint(status, body) as (url, _), pytest.raises(SaslAuthenticationFailedError) as error:
        provider(tmp_path, url).token()
    assert says in str(error.value)
    assert SECRET not in str(error.value)


def test_an_endpoint_that_is_away_is_named(tmp_path: Path) -> None:
    with pytest.raises(SaslAuthenticationFailedError, match=r"127\.0\.0\.1:1 cannot be used"):
        provider(tmp_path, "http://127.0.0.1:1/token").token()


def test_a_token_file_is_read_each_time(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one\n")
    options = with_token_provider(
        client_options(Connection(client={**BASE, "sasl_oauth_token_file": str(token)}))
    )
    mechanism = SaslMechanismOAuth(**options)
    assert b"auth=Bearer one" in mechanism.auth_bytes()
    token.write_text("two\n")
    assert b"auth=Bearer two" in mechanism.auth_bytes()
    token.unlink()
    with pytest.raises(SaslAuthenticationFailedError, match="cannot read"):
        mechanism.auth_bytes()


@pytest.mark.parametrize(
    ("client", "says"),
    [
        (BASE, "client.sasl_oauth_token_url: it is missing; OAUTHBEARER without"),
        (
            {**BASE, "sasl_oauth_token_file": "/no/such"},
            "token_file: cannot read the file: No",
        ),
        (
            {**BASE, "sasl_oauth_token_url": "http://h/"},
            "client.sasl_oauth_client_id: it is missing; OAUTHBEARER",
        ),
        (
            {
                **BASE,
                "sasl_oauth_token_url": "http://u:hunter2@h/",
                "sasl_oauth_client_id": "i",
                "sasl_oauth_client_secret_file": "/dev/null",
            },
            "client.sasl_oauth_token_url: it must be like https://",
        ),
    ],
)
def test_what_is_missing_is_named(client: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as error:
        client_options(Connection(client=client))
    assert says in str(error.value)
    assert SECRET not in str(error.value)


@settings(max_examples=60)
@given(
    st.binary(max_size=40)
    | st.recursive(st.none() | st.text() | st.floats(), st.lists).map(
        lambda value: str(value).encode()
    )
)
def test_any_answer_is_a_token_or_a_typed_error(body: bytes) -> None:
    try:
        token, seconds = oauth._token(body, "host")
    except SaslAuthenticationFailedError:
        return
    assert token
    assert 1 <= seconds <= 86_400
