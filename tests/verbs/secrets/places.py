"""A configuration with a secret of its own in every place that takes one."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import bcrypt

from tests.certificates import Authority, openssl
from tests.delivery.services import free_port
from tests.http_server import serving
from tests.verbs.secrets.servers import Repeating, SecureBroker

VARIABLE: Final = "TIDEMARK_KAFKA_CLIENT"
USER: Final = "prometheus"
PLACES: Final = (
    *("password in a variable", "password in the file", "password in a password file"),
    *("OAuth secret", "OAuth token", "key password", "address in a file", "address with a query"),
    *("receiver's authorization", "signing secret", "Alertmanager's authorization"),
    *("watchdog's address", "watchdog's authorization", "JMX authorization", "JMX query"),
    *("web password", "password of --command-config", "refused password"),
)


def secret_of(place: str) -> str:
    """Long enough to be found in base64 at any alignment; its name is in it."""
    return f"hunter2{re.sub('[^A-Za-z]', '', place.title())}Xq7"


SECRETS: Final = {place: secret_of(place) for place in PLACES}


def forms(secret: str) -> Iterator[bytes]:
    """As it is, in hexadecimal, and in base64 at each alignment."""
    data = secret.encode()
    yield data
    yield data.hex().encode()
    for skip in range(3):
        whole = data[skip : skip + (len(data) - skip) // 3 * 3]
        yield base64.b64encode(whole)


def leaks(text: bytes) -> list[str]:
    """The places whose secrets a text shows."""
    return [name for name, secret in SECRETS.items() if any(f in text for f in forms(secret))]


class Stage:
    """The servers, the files, and the configuration that names them."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self.folder = folder
        self.web = stack.enter_context(serving(Repeating(SECRETS["OAuth token"])))
        self.brokers = {
            "events": SecureBroker("PLAIN"),
            "plain": SecureBroker("PLAIN"),
            "refused": SecureBroker("PLAIN", refuses=True),
            "scram": SecureBroker("SCRAM-SHA-256", refuses=True),
            "oauth": SecureBroker("OAUTHBEARER"),
            "tls": SecureBroker(),
            "java": SecureBroker("PLAIN"),
        }
        for broker in self.brokers.values():
            stack.callback(broker.close)
        self.ports = {"collect": free_port(), "export": free_port()}
        self._tls = self._certificates()
        self.config = folder / "tidemark.yaml"
        self.config.write_text(json.dumps(self._document()), encoding="utf-8")
        self.variables = {
            VARIABLE: json.dumps(plain(SECRETS["password in a variable"])),
            "TIDEMARK_LOG_LEVEL": "debug",
            "TIDEMARK_KAFKA_CLIENT_LOG_LEVEL": "debug",
        }
        self.properties = folder / "client.properties"
        self.properties.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
            "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
            f'username="u" password="{SECRETS["password of --command-config"]}";\n',
            encoding="utf-8",
        )

    def bootstrap(self, name: str) -> str:
        return f"127.0.0.1:{self.brokers[name].port}"

    def learned(self) -> bytes:
        """All that the servers were sent."""
        return b"".join(each.learned for each in self.brokers.values()) + self.web.learned.encode()

    def _file(self, place: str, text: str = "{}") -> str:
        path = self.folder / place.replace(" ", "-")
        path.write_text(text.replace("{}", SECRETS[place]) + "\n", encoding="utf-8")
        return str(path)

    def _certificates(self) -> dict[str, str]:
        authority = Authority(self.folder / "tls")
        certificate, key = authority.issue("client")
        self.brokers["tls"].require_certificate(
            *authority.issue("broker", "127.0.0.1"), authority.folder / authority.certificate.name
        )
        given = ("pkcs8", "-topk8", "-in", str(key), "-out", "encrypted.key")
        openssl(authority.folder, *given, "-passout", f"pass:{SECRETS['key password']}")
        return {
            "security_protocol": "SSL",
            "ssl_cafile": str(authority.certificate),
            "ssl_certfile": str(certificate),
            "ssl_keyfile": str(authority.folder / "encrypted.key"),
            "ssl_password_file": self._file("key password"),
        }

    def _users(self) -> str:
        path = self.folder / "web.yaml"
        hashed = bcrypt.hashpw(SECRETS["web password"].encode(), bcrypt.gensalt(4)).decode()
        path.write_text(json.dumps({"basic_auth_users": {USER: hashed}}), encoding="utf-8")
        return str(path)

    def _clusters(self) -> Iterator[dict[str, Any]]:
        scram = plain("") | {"sasl_mechanism": "SCRAM-SHA-256"}
        del scram["sasl_plain_password"]
        oauth = {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_oauth_token_url": f"{self.web.url}/token",
            "sasl_oauth_client_id": "tidemark",
            "sasl_oauth_client_secret_file": self._file("OAuth secret"),
        }
        clients = {
            "plain": plain(SECRETS["password in the file"]),
            "refused": plain(SECRETS["refused password"]),
            "scram": scram
            | {"sasl_plain_password_file": self._file("password in a password file")},
            "oauth": oauth,
            "tls": self._tls,
        }
        for name, client in clients.items():
            yield {"name": name, "bootstrap_servers": [self.bootstrap(name)], "client": client}

    def _document(self) -> dict[str, Any]:
        clusters = list(self._clusters())
        query = f"{self.web.url}/metrics?token={SECRETS['JMX query']}"
        file = self._file("JMX authorization", "Bearer {}")
        clusters[0]["jmx"] = [{"broker": 1, "url": query, "authorization_file": file}]
        users = self._users()
        # The address is secret, and each receiver repeats it.
        by_file = {
            "name": "by-file",
            "url_file": self._file("address in a file", f"{self.web.url}/hooks/{{}}"),
            "authorization_file": self._file("receiver's authorization", "Bearer {}"),
            "secret_file": self._signing(),
        }
        by_url = {
            "name": "by-url",
            "url": f"{self.web.url}/hook?token={SECRETS['address with a query']}",
        }
        manager = {
            "name": "managers",
            "urls": [self.web.url],
            "authorization_file": self._file("Alertmanager's authorization", "Basic {}"),
        }
        return {
            "kafka": {"bootstrap_servers": [self.bootstrap("events")]},
            "clusters": clusters,
            "collect": {
                "listen": f"127.0.0.1:{self.ports['collect']}",
                "web_config_file": users,
                "jmx_seconds": 1.0,
                "watchdog_url_file": self._file("watchdog's address", f"{self.web.url}/w/{{}}"),
                "watchdog_authorization_file": self._file("watchdog's authorization", "Bearer {}"),
                "watchdog_seconds": 0.5,
            },
            "export": {
                "listen": f"127.0.0.1:{self.ports['export']}",
                "web_config_file": users,
                "stale_seconds": 1.0,
            },
            "notify": {"receivers": [by_file, by_url], "alertmanagers": [manager]},
        }

    def _signing(self) -> str:
        secret = base64.b64encode(SECRETS["signing secret"].encode()).decode()
        path = self.folder / "signing"
        path.write_text(f"whsec_{secret}\n", encoding="utf-8")
        return str(path)


def plain(password: str) -> dict[str, Any]:
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "tidemark",
        "sasl_plain_password": password,
    }
