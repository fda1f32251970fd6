"""The HTTP servers of the three long-running processes against 400 clients that finish nothing."""

from __future__ import annotations

import json
import socket
import ssl
import time
from contextlib import ExitStack, closing
from pathlib import Path

import bcrypt
import pytest
import requests

from tests.certificates import Authority
from tests.cluster.running_verbs import running
from tests.delivery.services import free_port

pytestmark = [pytest.mark.slow, pytest.mark.soak]

SECONDS = 60.0
CLIENTS = 200
PROBES = 20
PASSWORD = "hunter2"


class Secure:
    """A web configuration file with everything, and what a client needs for it."""

    def __init__(self, folder: Path) -> None:
        authority = Authority(folder)
        certificate, key = authority.issue("server", "127.0.0.1")
        self.client, self.authority = authority.issue("prometheus"), authority.certificate
        hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
        tls = {
            "cert_file": str(certificate),
            "key_file": str(key),
            "client_ca_file": str(authority.certificate),
            "client_auth_type": "RequireAndVerifyClientCert",
        }
        self.file = folder / "web.json"
        self.file.write_text(
            json.dumps({"tls_server_config": tls, "basic_auth_users": {"prometheus": hashed}})
        )

    def session(self) -> requests.Session:
        made = requests.Session()
        # Not the bundle of the environment.
        made.trust_env = False
        certificate, key = map(str, self.client)
        made.verify, made.cert = str(self.authority), (certificate, key)
        return made

    def wrap(self, connection: socket.socket) -> socket.socket:
        context = ssl.create_default_context(cafile=str(self.authority))
        context.load_cert_chain(*self.client)
        return context.wrap_socket(connection, server_hostname="127.0.0.1")


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def crowd(stack: ExitStack, port: int, web: Secure | None) -> list[socket.socket]:
    """Silent connections, and those that have begun a request, which it returns."""
    dripping = []
    for number in range(2 * CLIENTS):
        connection = socket.create_connection(("127.0.0.1", port), timeout=10)
        stack.enter_context(closing(connection))
        if number % 2:
            if web is not None:
                connection = stack.enter_context(closing(web.wrap(connection)))
            connection.sendall(b"GET / HTTP/1.1\r\nX: ")
            dripping.append(connection)
    return dripping


@pytest.mark.parametrize("verb", ["collect", "stream", "export"])
@pytest.mark.parametrize("secure", [False, True], ids=["plain", "secure"])
def test_probes_are_answered_within_a_second(verb: str, secure: bool, tmp_path: Path) -> None:
    web = Secure(tmp_path / "secure") if secure else None
    client = requests.Session() if web is None else web.session()
    servers = {"bootstrap_servers": [f"127.0.0.1:{free_port()}"]}
    options = {} if web is None else {"web_config_file": str(web.file)}
    document = {"kafka": servers, "clusters": [{"name": "east", **servers}], verb: options}
    slowest = 0.0
    with running(tmp_path, {verb: document}) as verbs, ExitStack() as stack:
        started = verbs[verb]
        port = started.port
        base = f"{'https' if secure else 'http'}://127.0.0.1:{port}"
        started.wait_for(lambda: listens(port), "listens", SECONDS)
        dripping = crowd(stack, port, web)
        for _ in range(PROBES):
            for connection in dripping:
                try:
                    connection.sendall(b"x")
                except OSError:
                    # The server has closed those beyond its bound or deadline.
                    continue
            began = time.monotonic()
            assert client.get(f"{base}/-/healthy", timeout=10).status_code == 200
            slowest = max(slowest, time.monotonic() - began)
            # Each probe is a connection of its own.
            client.close()
        print(f"{verb}: the slowest of {PROBES} probes took {slowest * 1000:.0f} ms")
        assert slowest < 1.0
        if web is not None:
            check_access(web, base)
        assert started.process.poll() is None
    assert PASSWORD not in started.log.read_text()


def check_access(web: Secure, base: str) -> None:
    """Metrics need a certificate of the authority and the password."""
    client = web.session()
    assert client.get(f"{base}/metrics", timeout=10).status_code == 401
    user = ("prometheus", PASSWORD)
    assert client.get(f"{base}/metrics", auth=user, timeout=10).status_code == 200
    client.close()
    client.cert = None
    with pytest.raises(requests.ConnectionError):
        client.get(f"{base}/metrics", auth=user, timeout=10)
