"""Kafka's client as Tidemark uses it: options from the configuration, one clear line for every failure, our own topics.

`collect`, `stream` and the exporters share this module and nothing else of each other.
"""

from __future__ import annotations

import logging
import time
from typing import Any, Final

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka import errors as kafka_errors
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from tidemark.core.errors import ClusterError, ConfigError
from tidemark.core.events import REFUSED, TIMED_OUT, UNREACHABLE
from tidemark.kafka.options import client_options
from tidemark.settings import Connection, Topics, parse_address

__all__ = [
    "check_reachable",
    "checked_options",
    "ensure_topics",
    "make_admin",
    "make_consumer",
    "make_producer",
    "outcome_of",
    "quiet_client_logs",
    "topic_specifications",
]

# The answer to a Fetch over 20,000 replicas passes kafka-python's default of 1 MB.
MAX_ANSWER_BYTES: Final = 100_000_000
BOOTSTRAP_SECONDS: Final = 10.0
# Once one bootstrap server answered, how long the others may take to be used beside it.
LINGER_SECONDS: Final = 0.3
HOUR_MS: Final = 3_600_000


def quiet_client_logs() -> None:
    """Silences kafka-python's own log, which repeats with tracebacks what our errors say in one line."""
    logging.getLogger("kafka").setLevel(logging.CRITICAL + 1)


def outcome_of(error: BaseException) -> str:
    """How a connection or request failed, as `events.BrokerAnswer.outcome` names it (never `ok`)."""
    text = str(error)
    if "ECONNREFUSED" in text:
        return REFUSED
    if isinstance(
        error,
        kafka_errors.SaslAuthenticationFailedError | kafka_errors.UnsupportedSaslMechanismError,
    ):
        return "authentication_failed"
    if isinstance(error, kafka_errors.AuthorizationError):
        return "authorization_failed"
    if (
        isinstance(
            error, kafka_errors.KafkaTimeoutError | kafka_errors.RequestTimedOutError | TimeoutError
        )
        or "timed out" in text
    ):
        return TIMED_OUT
    if "Handshake failed" in text:
        return "tls_handshake_failed"
    return UNREACHABLE


def check_reachable(connection: Connection, timeout_seconds: float = BOOTSTRAP_SECONDS) -> None:
    """Connects to all bootstrap servers at once until one answers with the whole handshake (TLS, SASL, ApiVersions).

    Raises ClusterError, one line, naming each server with what it did and what to do; ConfigError for a client option
    that kafka-python does not take.
    """
    _answering(connection, timeout_seconds, linger_seconds=0.0)


def _answering(connection: Connection, timeout_seconds: float, linger_seconds: float) -> list[str]:
    """The bootstrap servers that answer within `linger_seconds` of the first that does."""
    quiet_client_logs()
    options = checked_options(connection)
    net = NetworkSelector(**options)
    manager = KafkaConnectionManager(net, **options)
    attempts: dict[str, Any] = {}

    async def connect_all() -> None:
        for broker in manager.cluster.bootstrap_brokers():

            async def handshake(node: Any = broker.node_id) -> None:
                await manager.get_connection(
                    node, timeout_ms=timeout_seconds * 1000, refresh_metadata_on_err=False
                )

            attempts[f"{broker.host}:{broker.port}"] = net.call_soon_with_future(handshake)
        first_at = 0.0
        deadline = time.monotonic() + timeout_seconds + 0.2
        while time.monotonic() < deadline and not all(
            attempt.is_done for attempt in attempts.values()
        ):
            if any(attempt.succeeded() for attempt in attempts.values()):
                first_at = first_at or time.monotonic()
                if time.monotonic() - first_at >= linger_seconds:
                    return
            await net.sleep(0.01)

    try:
        net.run(connect_all)
    finally:
        manager.close()
        net.close()
    found = [name for name, attempt in attempts.items() if attempt.succeeded()]
    if not found:
        timed_out = TimeoutError("timed out")
        reasons = {
            name: attempt.exception if attempt.failed() else timed_out
            for name, attempt in attempts.items()
        }
        detail = "; ".join(f"{name} {_explain(error)}" for name, error in reasons.items())
        raise ClusterError(
            f"no bootstrap server can be used: {detail}. Check bootstrap_servers and the client's security options."
        )
    return found


def _explain(error: BaseException) -> str:
    outcome = outcome_of(error)
    text = " ".join(str(error).split())[:200]
    return {
        REFUSED: "refused the connection (is the broker running, is this the right port?)",
        TIMED_OUT: "did not answer in time (paused, firewalled, or a TLS or SASL port spoken to in plaintext?)",
        "authentication_failed": f"refused the credentials ({text}); check client.sasl_mechanism and the user's password",
        "tls_handshake_failed": f"failed the TLS handshake ({text}); check client.security_protocol and client.ssl_cafile",
    }.get(outcome, f"failed ({text or type(error).__name__})")


def make_admin(connection: Connection, **options: Any) -> Any:
    """A KafkaAdminClient; the caller closes it. Raises ClusterError or ConfigError as `check_reachable` does."""
    return _make(KafkaAdminClient, connection, (), options)


def make_producer(connection: Connection, **options: Any) -> Any:
    """A KafkaProducer with kafka-python's `options`; the caller closes it."""
    return _make(KafkaProducer, connection, (), {"allow_auto_create_topics": False, **options})


def make_consumer(connection: Connection, *topics: str, **options: Any) -> Any:
    """A KafkaConsumer subscribed to `topics` (none: assign partitions yourself); the caller closes it."""
    return _make(KafkaConsumer, connection, topics, {"allow_auto_create_topics": False, **options})


def _make(
    kind: Any, connection: Connection, topics: tuple[str, ...], options: dict[str, Any]
) -> Any:
    known = kind.DEFAULT_CONFIG
    merged = {**checked_options(connection), **options}
    merged.setdefault("bootstrap_timeout_ms", int(BOOTSTRAP_SECONDS * 1000))
    merged = {key: value for key, value in merged.items() if key in known or key in options}
    # kafka-python picks one at random and gives it all the time there is, paused or not.
    merged["bootstrap_servers"] = _answering(connection, BOOTSTRAP_SECONDS, LINGER_SECONDS)
    try:
        return kind(*topics, **merged)
    except (kafka_errors.KafkaConfigurationError, AssertionError, ValueError, TypeError) as error:
        raise ConfigError(
            f"configuration: kafka client: {' '.join(str(error).split())}. Check the client options."
        ) from None
    except kafka_errors.KafkaError as error:
        raise ClusterError(
            f"cannot use {', '.join(connection.bootstrap_servers)}: {_explain(error)}."
        ) from None


def checked_options(connection: Connection) -> dict[str, Any]:
    """`client_options`, with the bootstrap servers checked, our client id, and a receive limit that fits large clusters."""
    options = client_options(connection)
    for server in connection.bootstrap_servers:
        parse_address(server)
    return {"receive_message_max_bytes": MAX_ANSWER_BYTES, "client_id": "tidemark", **options}


def topic_specifications(topics: Topics) -> dict[str, tuple[int, dict[str, str]]]:
    """Tidemark's topics: name -> (partitions, configuration). Replication and min.insync.replicas are explicit.

    The event topic and the views share one number of partitions; alerts and dead letters have one partition, so that
    their order is total.
    """
    common = {
        "min.insync.replicas": str(topics.min_in_sync_replicas),
        "unclean.leader.election.enable": "false",
        "compression.type": "producer",
    }
    views = {
        "cleanup.policy": "compact",
        "segment.ms": str(600_000),
        "min.cleanable.dirty.ratio": "0.1",
    }
    week = {"cleanup.policy": "delete", "retention.ms": str(7 * 24 * HOUR_MS)}
    return {
        topics.replica_state: (
            topics.partitions,
            {**common, "cleanup.policy": "delete", "retention.ms": str(24 * HOUR_MS)},
        ),
        topics.partition_views: (topics.partitions, {**common, **views}),
        topics.alerts: (1, {**common, **week}),
        topics.dead_letters: (1, {**common, **week}),
    }


def ensure_topics(connection: Connection, topics: Topics, create: bool = True) -> None:
    """Makes the four topics where they are missing, and checks the partition counts of those that exist.

    Raises ClusterError when a topic exists with another number of partitions, is missing with `create` false, or
    cannot be created (too few brokers, no right to).
    """
    wanted = topic_specifications(topics)
    admin = make_admin(connection)
    try:
        existing = {
            topic["name"]: len(topic["partitions"])
            for topic in admin.describe_topics(None)
            if not topic["error_code"]
        }
        for name, (partitions, _) in wanted.items():
            if name in existing and existing[name] != partitions:
                raise ClusterError(
                    f"topic {name} has {existing[name]} partitions, but the configuration says {partitions}. Set topics.partitions to what "
                    f"exists, or choose another topics.prefix (the checkpoint of `tidemark stream` is bound to the number too)."
                )
        missing = {
            name: specification for name, specification in wanted.items() if name not in existing
        }
        if missing and not create:
            raise ClusterError(
                f"topics {', '.join(missing)} do not exist. Start `tidemark collect` once, or check topics.prefix."
            )
        if missing:
            _create(admin, missing, topics)
    except kafka_errors.KafkaError as error:
        raise ClusterError(f"cannot prepare Tidemark's topics: {_explain(error)}.") from None
    finally:
        admin.close()


def _create(admin: Any, missing: dict[str, tuple[int, dict[str, str]]], topics: Topics) -> None:
    request = {
        name: {
            "num_partitions": partitions,
            "replication_factor": topics.replication_factor,
            "configs": configuration,
        }
        for name, (partitions, configuration) in missing.items()
    }
    answer = admin.create_topics(request, raise_errors=False)
    for topic in answer["topics"]:
        code = topic["error_code"]
        if code in {0, kafka_errors.TopicAlreadyExistsError.errno}:
            continue
        if code == kafka_errors.InvalidReplicationFactorError.errno:
            raise ClusterError(
                f"cannot create {topic['name']} with replication factor {topics.replication_factor}: the cluster has fewer brokers. "
                f"Set topics.replication_factor and topics.min_in_sync_replicas lower."
            )
        name = kafka_errors.for_code(code).__name__.removesuffix("Error")
        raise ClusterError(
            f"cannot create topic {topic['name']}: {name}. Create it as docs describe, or give the user the right to."
        )
    admin.wait_for_topics(list(missing))
