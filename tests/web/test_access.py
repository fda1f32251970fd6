"""TLS, client certificates and users, by a file in exporter-toolkit's form."""

from __future__ import annotations

import os
import time
from pathlib import Path

import bcrypt
import pytest
import requests
import yaml
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from tests.web.serving import certificate, echo, serving
from tidemark.core.errors import ConfigError
from tidemark.web import gate
from tidemark.web.health import Health
from tidemark.web.options import read_web_file
from tidemark.web.server import serve

SECRET = "correct horse"
HASH = bcrypt.hashpw(SECRET.encode(), bcrypt.gensalt(4)).decode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("certificates")
    for name in ("server", "client", "stranger"):
        certificate(made, name)
    return made


def web_file(path: Path, document: object) -> Path:
    path.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    return path


def tls(folder: Path, **options: str) -> dict[str, object]:
    return {"tls_server_config": {"cert_file": "server.crt", "key_file": "server.key", **options}}


def test_tls_with_the_certificate_of_a_client(folder: Path) -> None:
    options = {"client_ca_file": "client.crt", "client_auth_type": "RequireAndVerifyClientCert"}
    path = web_file(folder / "mutual.yml", tls(folder, **options))
    with serving(path) as server:
        url, trusted = f"https://127.0.0.1:{server.port}/-/healthy", str(folder / "server.crt")
        pair = (str(folder / "client.crt"), str(folder / "client.key"))
        assert requests.get(url, verify=trusted, cert=pair, timeout=5).status_code == 200
        other = (str(folder / "stranger.crt"), str(folder / "stranger.key"))
        for cert in (None, other):
            with pytest.raises(requests.ConnectionError):
                requests.get(url, verify=trusted, cert=cert, timeout=5)
        with pytest.raises(requests.ConnectionError):
            requests.get(url.replace("https", "http"), timeout=5)
        assert requests.get(url, verify=trusted, cert=pair, timeout=5).status_code == 200


def test_users_and_what_they_are_needed_for(tmp_path: Path) -> None:
    path = web_file(tmp_path / "web.yml", {"basic_auth_users": {"anna": HASH}})
    with serving(path) as server:
        base = f"http://127.0.0.1:{server.port}"
        right = ("anna", SECRET)
        for auth, code in (
            (None, 401),
            (("anna", "wrong"), 401),
            (("anna", "x" * 100), 401),
            (("berta", SECRET), 401),
            (right, 200),
            (right, 200),
            (("anna", "wrong"), 401),
        ):
            answer = requests.get(f"{base}/metrics", auth=auth, timeout=5)
            assert answer.status_code == code, auth
            assert ("WWW-Authenticate" in answer.headers) == (code == 401)
        for header in ("Basic !!", "Bearer x", "Basic", ""):
            headers = {"Authorization": header}
            assert requests.get(f"{base}/", headers=headers, timeout=5).status_code == 401
        # An orchestrator's probe has no password, and the answer nothing to hide.
        assert requests.get(f"{base}/-/healthy", timeout=5).status_code == 200


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ("127.0.0.1:9754", 200),
        ("[::1]:9754", 200),
        ("10.1.2.3", 200),
        ("localhost:9754", 200),
        ("a.localhost", 200),
        ("export:9754", 200),
        ("tidemark-export.monitoring.svc:9754", 200),
        ("Tidemark.Example.org:443", 200),
        ("tidemark.example.org.", 200),
        ("rebound.example.com:9754", 421),
        ("tidemark.example.org.evil.com", 421),
        ("127.0.0.1.evil.com", 421),
        ("svc.evil.com", 421),
    ],
)
def test_only_names_that_no_web_site_can_have_are_answered(host: str, code: int) -> None:
    server = serve(
        echo, Health(), "127.0.0.1:0", "export.listen", external_url="https://tidemark.example.org"
    )
    try:
        base, headers = f"http://127.0.0.1:{server.port}", {"Host": host}
        answer = requests.get(f"{base}/", headers=headers, timeout=5)
        assert answer.status_code == code
        assert ("notify.external_url" in answer.text) == (code == 421)
        assert requests.get(f"{base}/metrics", headers=headers, timeout=5).status_code == code
        # It says nothing of a cluster, and probes have many names.
        assert requests.get(f"{base}/-/healthy", headers=headers, timeout=5).status_code == 200
    finally:
        server.close()


def test_a_server_with_users_is_answered_under_any_name(tmp_path: Path) -> None:
    path = web_file(tmp_path / "web.yml", {"basic_auth_users": {"anna": HASH}})
    with serving(path) as server:
        url, headers = f"http://127.0.0.1:{server.port}/", {"Host": "monitor.example.org"}
        answer = requests.get(url, headers=headers, auth=("anna", SECRET), timeout=5)
        assert answer.status_code == 200


def test_changed_files_are_read_again_and_wrong_ones_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "CHECK_SECONDS", 0.0)
    path = web_file(tmp_path / "web.yml", {"basic_auth_users": {"anna": HASH}})
    with serving(path) as server:
        url = f"http://127.0.0.1:{server.port}/"

        def code(user: str) -> int:
            return requests.get(url, auth=(user, SECRET), timeout=5).status_code

        def write(document: object, seconds: int) -> None:
            web_file(path, document)
            os.utime(path, (time.time() + seconds,) * 2)

        assert (code("anna"), code("berta")) == (200, 401)
        write({"basic_auth_users": {"berta": HASH}}, 1)
        assert (code("anna"), code("berta")) == (401, 200)
        # A file that is half written opens no door.
        for number, broken in enumerate(("", "basic_auth_users: {berta: x}", ": ["), start=2):
            with capture_logs() as logged:
                write(broken, number)
                assert (code("anna"), code("berta")) == (401, 200)
            assert HASH not in str(logged)
            assert [entry["log_level"] for entry in logged] == ["error"]


def test_headers_of_the_file_replace_ours(tmp_path: Path) -> None:
    headers = {"Strict-Transport-Security": "max-age=1", "X-Content-Type-Options": ""}
    path = web_file(tmp_path / "web.yml", {"http_server_config": {"headers": headers}})
    with serving(path) as server:
        answer = requests.get(f"http://127.0.0.1:{server.port}/", timeout=5)
    assert answer.headers["Strict-Transport-Security"] == "max-age=1"
    assert "X-Content-Type-Options" not in answer.headers


@pytest.mark.parametrize(
    ("document", "text"),
    [
        (
            {"basic_auth_users": {"anna": "plain-secret"}},
            "user 1 needs a name without a",
        ),
        ({"basic_auth_users": {"a:b": HASH}}, "without a colon"),
        ({"basic_auth_user": {}}, "unknown field `basic_auth_user`"),
        ("basic_auth_users: {anna: plain-secret", "is not YAML: line 1"),
        ({"tls_server_config": {"cert_file": "x"}}, "missing required field `key_file`"),
        (tls(Path(), client_auth_type="RequireAnyClientCert"), "client_auth_type: it must be"),
        (tls(Path(), client_ca_file="client.crt"), "belong together"),
        (tls(Path(), client_auth_type="VerifyClientCertIfGiven"), "belong together"),
        (
            tls(Path(), client_allowed_sans="x"),
            "unknown field; there are cert_file",
        ),
        (tls(Path(), min_version="TLS10"), "min_version: it must be one of TLS12"),
        (
            {"http_server_config": {"headers": {"X-Own": "1"}}},
            "headers: it must be one of Cont",
        ),
    ],
)
def test_a_wrong_file_is_one_line_without_its_secrets(
    tmp_path: Path, document: object, text: str
) -> None:
    path = web_file(tmp_path / "web.yml", document)
    with pytest.raises(ConfigError) as raised:
        read_web_file(path)
    assert text in str(raised.value)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)
    assert "plain-secret" not in str(raised.value)


def test_missing_and_wrong_certificates_are_named(folder: Path, tmp_path: Path) -> None:
    for document, text in (
        (tls(folder, key_file="absent.key"), "cert_file or key_file: No such file"),
        (
            tls(folder, key_file="stranger.key"),
            "cert_file or key_file: the key does not belong to the certificate",
        ),
        (
            tls(folder, client_ca_file="absent", client_auth_type="VerifyClientCertIfGiven"),
            "client_ca_file: No such file",
        ),
    ):
        path = web_file(folder / "wrong.yml", document)
        with pytest.raises(ConfigError, match=text), serving(path):
            pass
    with pytest.raises(ConfigError, match="cannot read the web configuration"):
        read_web_file(tmp_path / "absent")


@given(st.binary(max_size=200))
def test_any_file_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yml"
    path.write_bytes(raw)
    try:
        read_web_file(path)
    except ConfigError:
        return
