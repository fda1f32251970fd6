"""The trust store of the wheel's Java: a real Java trusts exactly what is in it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.certificates import Authority
from tests.conftest import need
from tests.http_server import Handler, serving, use_tls
from tidemark.core.errors import TidemarkError
from tidemark.jvm.jars import pyspark_jars
from tidemark.jvm.java import find_java
from tidemark.jvm.trust_store import (
    bundles,
    read_certificates,
    trust_store,
    trust_store_options,
)

SETTINGS = """\
<ivysettings><settings defaultResolver="r"/><resolvers>
<ibiblio name="r" m2compatible="true" root="{root}"/></resolvers></ivysettings>
"""


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TIDEMARK_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@contextmanager
def registry(authority: Authority) -> Iterator[tuple[str, list[str]]]:
    """An empty registry over TLS: its address, and the paths that were asked."""
    asked: list[str] = []

    class Empty(Handler):
        def do_HEAD(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        do_GET = do_HEAD

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Empty)) as server:
        use_tls(server, authority, "registry")
        yield f"https://127.0.0.1:{server.server_port}/", asked


@pytest.mark.parametrize("trusted", [True, False])
def test_java_reaches_a_registry_behind_an_authority_that_python_trusts(
    authority: Authority, tmp_path: Path, trusted: bool
) -> None:
    try:
        java, ivy = find_java(), max(pyspark_jars().glob("ivy-*.jar"))
    except TidemarkError as error:
        pytest.fail(str(error))
    bundle = {"SSL_CERT_FILE": str(authority.certificate)} if trusted else {}
    options = trust_store_options(bundle)
    with registry(authority) as (root, asked):
        settings = tmp_path / "settings.xml"
        settings.write_text(SETTINGS.format(root=root), encoding="utf-8")
        subprocess.run(
            [
                *(str(java.java), *options, f"-Divy.default.ivy.user.dir={tmp_path}"),
                *("-cp", str(ivy), "org.apache.ivy.Main", "-settings", str(settings)),
                *("-dependency", "org.example", "nothing", "1"),
            ],
            capture_output=True,
            timeout=120,
            check=False,
        )
    assert bool(asked) is trusted


def test_the_systems_certificates_are_found_and_written_once() -> None:
    need("openssl")
    (path,) = bundles({})
    assert len(list(read_certificates([path]))) > 50
    options = trust_store_options({})
    assert options == trust_store_options({})
    assert options[0].startswith("-Djavax.net.ssl.trustStore=")


def test_without_a_bundle_java_keeps_its_own() -> None:
    assert trust_store_options({"SSL_CERT_FILE": "/nowhere.pem"}) == []


@given(st.lists(st.binary(max_size=60) | st.just(b"-----BEGIN CERTIFICATE-----\nAA=\n")))
def test_a_garbled_bundle_gives_no_certificate_or_some(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes]
) -> None:
    path = tmp_path_factory.mktemp("bundle") / "bundle.pem"
    path.write_bytes(b"-----END CERTIFICATE-----\n".join(parts))
    found = list(read_certificates([path]))
    assert len(trust_store(found)) >= 32 + sum(map(len, found))
