"""Real brokers with TLS, Kafka's authorizer, and a listener for each way to authenticate.

SCRAM is SASL_SSL with SCRAM-SHA-512, OAUTH is SASL_SSL with OAUTHBEARER and signed tokens, MTLS is
SSL with client certificates. Unauthenticated clients of the plaintext listener are the tests' own.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.certificates import Authority
from tests.cluster.token_endpoint import AUDIENCE, ISSUER, TokenEndpoint
from tests.http_server import serving
from tidemark_lab.brokers.cluster import BROKERS, LocalCluster
from tidemark_lab.brokers.ports import free_ports

LISTENERS: Final = {"SCRAM": "SASL_SSL", "OAUTH": "SASL_SSL", "MTLS": "SSL"}
# User -> listener. `describe` has fewer rights than the others.
USERS: Final = {
    **dict.fromkeys(("scram", "describe", "tidemark"), "SCRAM"),
    "oauth": "OAUTH",
    "mtls": "MTLS",
}
SECRET: Final = "hunter2"
_SECURITY: Final = "org.apache.kafka.common.security"
_ALLOWED_URLS: Final = "org.apache.kafka.sasl.oauthbearer.allowed.urls"


class SecureListeners:
    """What a LocalCluster needs for these listeners: server properties, listeners, JVM flags."""

    def __init__(self, authority: Authority, endpoint: TokenEndpoint) -> None:
        self._authority, self._endpoint = authority, endpoint
        ports = free_ports(len(LISTENERS) * len(BROKERS))
        self._ports = {
            name: ports[number * len(BROKERS) : (number + 1) * len(BROKERS)]
            for number, name in enumerate(LISTENERS)
        }
        self.listeners = {
            broker: ",".join(
                f"{name}://127.0.0.1:{of_listener[index]}"
                for name, of_listener in self._ports.items()
            )
            for index, broker in enumerate(BROKERS)
        }
        keys = endpoint.keys.as_uri()
        self.jvm_flags = {broker: [f"-D{_ALLOWED_URLS}={keys}"] for broker in BROKERS}
        certificate, key = authority.issue("broker", "127.0.0.1")
        store = authority.folder / "broker-store.pem"
        store.write_text(key.read_text() + certificate.read_text(), encoding="utf-8")
        protocols = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", **LISTENERS}
        oauth = "listener.name.oauth.oauthbearer.sasl"
        self.overrides = {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "false",
            "super.users": "User:ANONYMOUS",
            "listener.security.protocol.map": ",".join(f"{k}:{v}" for k, v in protocols.items()),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(authority.certificate),
            "listener.name.mtls.ssl.client.auth": "required",
            "listener.name.scram.sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.scram.scram-sha-512.sasl.jaas.config": (
                f"{_SECURITY}.scram.ScramLoginModule required;"
            ),
            "listener.name.oauth.sasl.enabled.mechanisms": "OAUTHBEARER",
            f"{oauth}.jaas.config": (f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule required;"),
            f"{oauth}.server.callback.handler.class": (
                f"{_SECURITY}.oauthbearer.OAuthBearerValidatorCallbackHandler"
            ),
            "sasl.oauthbearer.jwks.endpoint.url": keys,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "sasl.oauthbearer.expected.issuer": ISSUER,
        }
        (authority.folder / "secret").write_text(SECRET, encoding="utf-8")

    def servers(self, user: str) -> list[str]:
        return [f"127.0.0.1:{port}" for port in self._ports[USERS[user]]]

    def client(self, user: str) -> dict[str, Any]:
        """Its options of `client`: secrets by file."""
        folder = self._authority.folder
        listener, trusted = USERS[user], {"ssl_cafile": str(self._authority.certificate)}
        if listener == "MTLS":
            certificate, key = self._authority.issue(user)
            pair = {"ssl_certfile": str(certificate), "ssl_keyfile": str(key)}
            return {"security_protocol": "SSL", **trusted, **pair}
        sasl = {"security_protocol": "SASL_SSL", **trusted}
        if listener == "SCRAM":
            login = {"sasl_mechanism": "SCRAM-SHA-512", "sasl_plain_username": user}
            return {**sasl, **login, "sasl_plain_password_file": str(folder / "secret")}
        return {
            **sasl,
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_oauth_token_url": self._endpoint.url,
            "sasl_oauth_client_id": user,
            "sasl_oauth_client_secret_file": str(folder / "secret"),
            "sasl_oauth_cafile": str(self._authority.certificate),
        }


def principal(user: str) -> str:
    """The brokers' name of a user."""
    return f"User:CN={user}" if USERS[user] == "MTLS" else f"User:{user}"


@contextmanager
def secure_listeners(folder: Path) -> Iterator[SecureListeners]:
    """Certificates and a running token endpoint, in a folder of their own."""
    authority = Authority(folder)
    clients = {user: SECRET for user, listener in USERS.items() if listener == "OAUTH"}
    with serving(TokenEndpoint(authority, clients)) as endpoint:
        yield SecureListeners(authority, endpoint)


@contextmanager
def secure_cluster(listeners: SecureListeners) -> Iterator[LocalCluster]:
    """Running brokers with these listeners and their users."""
    with LocalCluster(
        overrides=listeners.overrides,
        listeners=listeners.listeners,
        jvm_flags=listeners.jvm_flags,
    ) as cluster:
        create_users(cluster)
        yield cluster


def create_users(brokers: LocalCluster) -> None:
    """The passwords of the SCRAM listener."""
    wanted = [
        UserScramCredentialUpsertion(user, ScramMechanism.SCRAM_SHA_512, SECRET)
        for user, listener in USERS.items()
        if listener == "SCRAM"
    ]
    failed = brokers.administer(
        lambda admin: admin.alter_user_scram_credentials(wanted), "create users"
    )
    assert not any(failed.values()), failed


def grant(brokers: LocalCluster, user: str, commands: Iterable[str]) -> None:
    """Executes commands of kafka-acls.sh for a user, as `check-config --acls` prints them."""
    wanted = [acl for line in commands for acl in _acls(user, shlex.split(line))]
    assert wanted
    made = brokers.administer(lambda admin: admin.create_acls(wanted), "create ACLs")
    assert not made["failed"], made


def _acls(user: str, words: list[str]) -> Iterator[Any]:
    assert words[0] == "kafka-acls.sh"
    rest, operations = words[1:], []
    how, kind, name = ACLResourcePatternType.LITERAL, None, ""
    while rest:
        option = rest.pop(0)
        value = "" if option in ("--add", "--cluster") else rest.pop(0)
        if option == "--allow-principal":
            assert value in (principal(user), "User:PRINCIPAL")
        elif option == "--operation":
            operations.append(ACLOperation[_snake(value)])
        elif option == "--resource-pattern-type":
            how = ACLResourcePatternType[value.upper()]
        elif option in ("--topic", "--group"):
            kind, name = ResourceType[option[2:].upper()], value
        elif option == "--cluster":
            kind, name = ResourceType.CLUSTER, "kafka-cluster"
        else:
            assert option in ("--bootstrap-server", "--add"), option
    for operation in operations:
        pattern = ResourcePattern(kind, name, how)
        yield ACL(principal(user), "*", operation, ACLPermissionType.ALLOW, pattern)


def _snake(word: str) -> str:
    """DescribeConfigs -> DESCRIBE_CONFIGS."""
    return "".join(f"_{c}" if c.isupper() else c.upper() for c in word).removeprefix("_")
