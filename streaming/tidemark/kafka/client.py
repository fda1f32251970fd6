"""kafka-python as Tidemark uses it: options from the configuration, one clear line per failure.

`collect`, `stream`, the verbs and the exporters share this package.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka import errors as kafka_errors
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from tidemark.core.errors import ClusterError, ConfigError
from tidemark.core.events import (
    AUTHENTICATION_FAILED,
    NOT_KAFKA,
    REFUSED,
    TIMED_OUT,
    TLS_HANDSHAKE_FAILED,
)
from tidemark.kafka.client_internals import bound_batches, outcome_of_text
from tidemark.kafka.client_log import quiet_client_logs
from tidemark.kafka.oauth import with_token_provider
from tidemark.kafka.options import check_packages, check_tls, client_options
from tidemark.kafka.secret_files import log_in_with_files
from tidemark.settings import Connection, Settings, parse_address, servers_of_flag

# A Fetch response for 20,000 replicas exceeds kafka-python's default of 1 MB.
MAX_ANSWER_BYTES: Final = 100_000_000
BOOTSTRAP_SECONDS: Final = 10.0
# How long to wait for further bootstrap servers once one has answered.
LINGER_SECONDS: Final = 0.3
# An address may be one of several backends, of which one is dead.
ATTEMPTS: Final = 3
RETRY_SECONDS: Final = 0.2
# After what Kafka's authorizer refuses.
RIGHTS_CURE: Final = "; `tidemark check-config --acls` prints the rights"


def choose_connection(settings: Settings, bootstrap: str | None) -> Connection:
    """The Kafka that holds Tidemark's topics: the servers of `--bootstrap`, else as configured.

    Raises ConfigError for a wrong `--bootstrap`.
    """
    if bootstrap is None:
        return settings.kafka
    return msgspec.structs.replace(settings.kafka, bootstrap_servers=servers_of_flag(bootstrap))


def checked_options(connection: Connection) -> dict[str, Any]:
    """`client_options` after a check of the bootstrap servers, with our client id and limits."""
    options = client_options(connection)
    check_tls(connection, options)
    log_in_with_files()
    for server in connection.bootstrap_servers:
        parse_address(server, "bootstrap_servers")
    defaults = {"receive_message_max_bytes": MAX_ANSWER_BYTES, "client_id": "tidemark"}
    return with_token_provider({**defaults, **options})


class Producer(KafkaProducer):  # type: ignore[misc]
    """`close(timeout=0)` ends its thread, also where records are left.

    kafka-python's own flushes first, raises for what is left, and leaves the thread running.
    """

    def flush(self, timeout: float | None = None) -> None:
        if timeout != 0:
            super().flush(timeout)


def check_reachable(connection: Connection, timeout_seconds: float = BOOTSTRAP_SECONDS) -> None:
    """Connects to all bootstrap servers at once until one completes TLS, SASL and ApiVersions.

    Raises ClusterError, one line that names each server, its failure and the cure; ConfigError for
    a client option that kafka-python does not take.
    """
    _answering_servers(connection, timeout_seconds, linger_seconds=0.0)


def make_admin(connection: Connection, **options: Any) -> Any:
    """A KafkaAdminClient; the caller closes it. Raises as `check_reachable` does."""
    return _make(KafkaAdminClient, connection, (), options)


@contextlib.contextmanager
def administration(connection: Connection, purpose: str) -> Iterator[Any]:
    """A KafkaAdminClient for a while.

    What Kafka refuses meanwhile is raised as ClusterError: "cannot (purpose): ...".
    """
    admin = make_admin(connection)
    try:
        yield admin
    except kafka_errors.KafkaError as error:
        raise ClusterError(f"cannot {purpose}: {explain(error)}{rights_cure(error)}.") from None
    finally:
        admin.close()


def rights_cure(error: BaseException) -> str:
    """What follows a refusal by Kafka's authorizer; nothing after any other error."""
    return RIGHTS_CURE if isinstance(error, kafka_errors.AuthorizationError) else ""


def make_producer(connection: Connection, **options: Any) -> Any:
    """A KafkaProducer with kafka-python's `options`; the caller closes it (`close_producer`)."""
    return _make(Producer, connection, (), {"allow_auto_create_topics": False, **options})


def close_producer(producer: Any, seconds: float) -> None:
    """Delivers for at most `seconds`, then closes it whatever is left. Raises nothing."""
    with contextlib.suppress(Exception):
        producer.flush(seconds)
    with contextlib.suppress(Exception):
        producer.close(timeout=0)


def make_consumer(connection: Connection, *topics: str, **options: Any) -> Any:
    """A KafkaConsumer subscribed to `topics`, if any; the caller closes it.

    In place of a batch that unpacks beyond a bound it gives one record with an UnreadableBatch.
    """
    bound_batches()
    return _make(KafkaConsumer, connection, topics, {"allow_auto_create_topics": False, **options})


def outcome_of(error: BaseException) -> str:
    """How a connection or request failed: a value of `events.BrokerAnswer.outcome`."""
    if isinstance(
        error,
        kafka_errors.SaslAuthenticationFailedError | kafka_errors.UnsupportedSaslMechanismError,
    ):
        return AUTHENTICATION_FAILED
    if isinstance(error, kafka_errors.AuthorizationError):
        return "authorization_failed"
    timeouts = kafka_errors.KafkaTimeoutError | kafka_errors.RequestTimedOutError | TimeoutError
    return TIMED_OUT if isinstance(error, timeouts) else outcome_of_text(error)


def explain(error: BaseException) -> str:
    """What a server did, with the cure; the end of a sentence."""
    reason = reason_of(error)
    return {
        REFUSED: "refused the connection (is the broker running, is this the right port?)",
        TIMED_OUT: (
            "did not answer in time (paused, firewalled, or a plaintext connection to a TLS or "
            "SASL port?)"
        ),
        NOT_KAFKA: "does not speak Kafka's protocol (is this a port of HTTP, or of TLS?)",
        AUTHENTICATION_FAILED: (
            f"refused the credentials ({reason}); check the SASL mechanism and the user's password"
        ),
        TLS_HANDSHAKE_FAILED: (
            f"failed the TLS handshake ({reason}); check the security protocol and the "
            "certificate authorities"
        ),
    }.get(outcome_of(error), f"failed ({reason})")


def reason_of(error: BaseException) -> str:
    """The error's message on one line of at most 200 characters, or its type when it has none."""
    return " ".join(str(error).split())[:200] or type(error).__name__


def _make(
    kind: Any, connection: Connection, topics: tuple[str, ...], options: dict[str, Any]
) -> Any:
    known = kind.DEFAULT_CONFIG
    merged = {**checked_options(connection), **options}
    merged.setdefault("bootstrap_timeout_ms", int(BOOTSTRAP_SECONDS * 1000))
    # Nobody reads them, and they take a fifth of a producer's CPU time.
    merged.setdefault("metrics_enabled", False)
    merged = {key: value for key, value in merged.items() if key in known or key in options}
    # kafka-python picks one server at random and waits for it, paused or not.
    merged["bootstrap_servers"] = _answering_servers(connection, BOOTSTRAP_SECONDS, LINGER_SECONDS)
    try:
        return kind(*topics, **merged)
    except (kafka_errors.KafkaConfigurationError, AssertionError, ValueError, TypeError) as error:
        raise ConfigError(
            f"configuration: kafka client: {' '.join(str(error).split())}. "
            "Check the client options."
        ) from None
    except kafka_errors.KafkaError as error:
        servers = ", ".join(connection.bootstrap_servers)
        raise ClusterError(f"cannot use {servers}: {explain(error)}.") from None


def _answering_servers(
    connection: Connection, timeout_seconds: float, linger_seconds: float
) -> list[str]:
    """The bootstrap servers that answer within `linger_seconds` of the first one that does."""
    quiet_client_logs()
    options = checked_options(connection)
    check_packages(connection, options)
    net = NetworkSelector(**options)
    manager = KafkaConnectionManager(net, **options)
    attempts: dict[str, Any] = {}

    async def connect_all() -> None:
        for broker in manager.cluster.bootstrap_brokers():

            async def handshake(node: Any = broker.node_id) -> None:
                for left in reversed(range(ATTEMPTS)):
                    try:
                        await manager.get_connection(
                            node, timeout_ms=timeout_seconds * 1000, refresh_metadata_on_err=False
                        )
                        return
                    except kafka_errors.KafkaConnectionError:
                        if not left:
                            raise
                    await net.sleep(RETRY_SECONDS)

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
        detail = "; ".join(
            f"{name} {explain(attempt.exception if attempt.failed() else timed_out)}"
            for name, attempt in attempts.items()
        )
        raise ClusterError(
            f"no bootstrap server can be used: {detail}. "
            "Check --bootstrap or bootstrap_servers, and the client's security options."
        )
    return found
