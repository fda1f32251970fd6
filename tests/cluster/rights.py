"""Real brokers with Kafka's authorizer, and users with rights of docs/permissions.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourceType,
)

from tests.documented_rights import Right, rights_of_verbs
from tidemark_lab.brokers.cluster import BROKERS, LocalCluster
from tidemark_lab.brokers.layout import CONTROLLER
from tidemark_lab.brokers.ports import free_ports

_TOPIC: Final = {
    "describe": ACLOperation.DESCRIBE,
    "read": ACLOperation.READ,
    "describe_configs": ACLOperation.DESCRIBE_CONFIGS,
}
# User -> its operations on Topic * and on the cluster.
USERS: Final[dict[str, tuple[list[Any], list[Any]]]] = {
    "full": (list(_TOPIC.values()), [ACLOperation.DESCRIBE, ACLOperation.DESCRIBE_CONFIGS]),
    "describe": ([ACLOperation.DESCRIBE], []),
    "none": ([], []),
    "controllers": ([ACLOperation.DESCRIBE], [ACLOperation.CLUSTER_ACTION]),
}
# Verb -> its rights on Tidemark's own topics and groups. Each verb has a user of its own.
VERBS: Final = rights_of_verbs()
_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_LOGIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"


class RestrictedCluster:
    """A local cluster: everything for unauthenticated clients, USERS at listeners of their own."""

    def __init__(self) -> None:
        nodes = (CONTROLLER, *BROKERS)
        ports = dict(zip(nodes, free_ports(len(nodes)), strict=True))
        self.bootstrap_servers = [f"127.0.0.1:{ports[broker]}" for broker in BROKERS]
        self.controller = f"127.0.0.1:{ports[CONTROLLER]}"
        users = " ".join(
            f'user_{name}="{password(name)}"' for name in (*USERS, *map(user_of, VERBS))
        )
        protocols = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"}
        protocols |= dict.fromkeys(("USERS", "CONTROLLER_USERS"), "SASL_PLAINTEXT")
        overrides = {
            "authorizer.class.name": _AUTHORIZER,
            "allow.everyone.if.no.acl.found": "false",
            # The nodes themselves, and the tests' own client.
            "super.users": "User:ANONYMOUS",
            "controller.listener.names": "CONTROLLER,CONTROLLER_USERS",
            "listener.security.protocol.map": ",".join(f"{k}:{v}" for k, v in protocols.items()),
            "sasl.enabled.mechanisms": "PLAIN",
            **{
                f"listener.name.{name}.plain.sasl.jaas.config": f"{_LOGIN} required {users};"
                for name in ("users", "controller_users")
            },
        }
        listeners = {
            node: f"{'CONTROLLER_USERS' if node == CONTROLLER else 'USERS'}://127.0.0.1:{port}"
            for node, port in ports.items()
        }
        self.local = LocalCluster(overrides=overrides, listeners=listeners)


def user_of(verb: str) -> str:
    """The user with exactly the rights of a verb: `audit --publish` is audit_publish."""
    return re.sub(r"\W+", "_", verb)


def password(user: str) -> str:
    return f"{user}-secret"


def client(user: str) -> dict[str, str]:
    """Its options of `clusters[].client`."""
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": user,
        "sasl_plain_password": password(user),
    }


def _grant(admin: Any) -> None:
    cluster = ResourcePattern(ResourceType.CLUSTER, "kafka-cluster")
    topics = ResourcePattern(ResourceType.TOPIC, "*")
    wanted = [
        (user, operation, resource)
        for user, granted in USERS.items()
        for resource, operations in zip((topics, cluster), granted, strict=True)
        for operation in operations
    ]
    wanted += [
        (user_of(verb), ACLOperation[right.operation.upper()], _pattern(right))
        for verb, rights in VERBS.items()
        for right in rights
    ]
    made = admin.create_acls(
        [
            ACL(f"User:{user}", "*", operation, ACLPermissionType.ALLOW, resource)
            for user, operation, resource in wanted
        ]
    )
    assert not made["failed"], made


def _pattern(right: Right) -> Any:
    how = ACLResourcePatternType.PREFIXED if right.prefixed else ACLResourcePatternType.LITERAL
    return ResourcePattern(ResourceType[right.kind.upper()], right.name, how)


@contextmanager
def restricted_cluster() -> Iterator[RestrictedCluster]:
    made = RestrictedCluster()
    with made.local as brokers:
        brokers.create_topic("t", {0: [1, 2, 3], 1: [2, 3, 1]}, {"min.insync.replicas": "2"})
        brokers.administer(_grant, "create ACLs")
        yield made
