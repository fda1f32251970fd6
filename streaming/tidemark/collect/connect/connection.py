"""One connection to one broker, with a time-out of its own: a slow broker never delays another.

A request without an answer in time closes the connection, so that a late answer is never taken for
that of another request.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from kafka import errors as kafka_errors
from kafka.net.connection import KafkaConnection
from kafka.net.inet import create_connection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport

from tidemark.collect.connect.event_loop import EventLoop
from tidemark.core.broker_outcome_texts import NOT_CHECKED
from tidemark.core.events import AUTHENTICATION_FAILED, NOT_KAFKA, OK, TIMED_OUT, UNREACHABLE
from tidemark.kafka.client import outcome_of

# More than one pass sends to a broker at a time: kafka-python refuses requests above it.
MAX_IN_FLIGHT: Final = 64

# The broker lacks a version of a request that Tidemark knows.
UNSUPPORTED: Final = "unsupported"
# An answer that cannot be decoded.
GARBLED: Final = "garbled"
# At least for a connection with a login: brokers keep the answer to a failed one back for a while
# (connection.failed.authentication.delay.ms). No pass waits for it.
LOGIN_SECONDS: Final = 2.0
# A port that says nothing to Kafka's protocol gets this time to answer HTTP's.
OTHER_SERVICE_SECONDS: Final = 0.5


class NoAnswerError(Exception):
    """A broker gave no answer. `outcome` is as in `events.BrokerAnswer`."""

    def __init__(self, outcome: str) -> None:
        super().__init__(outcome)
        self.outcome = outcome


# Asks who answers, within seconds: OK, NOT_CHECKED where it cannot be asked, or the outcome that
# says why it is not the broker. Raises NoAnswerError.
Identify = Callable[["BrokerConnection", float], Awaitable[str]]


class BrokerConnection:
    """Opened in the background, closed by any failure. `options` are kafka-python's.

    `identify` asks whoever answers whether it is the broker. Only then it counts as connected; it
    is closed where that is another one.
    """

    def __init__(
        self,
        loop: EventLoop,
        options: dict[str, Any],
        broker: int,
        host: str,
        port: int,
        identify: Identify | None = None,
    ) -> None:
        self._identify = identify
        self.broker, self.host, self.port = broker, host, port
        self.outcome: str = UNREACHABLE
        # Failures in a row since the last answer.
        self.failures = 0
        self.connected_at: float | None = None
        # Whether it was asked who it is, and could be; null without a connection.
        self.identity_checked: bool | None = None
        self._loop = loop
        self._options = {
            **KafkaConnectionManager.DEFAULT_CONFIG,
            **options,
            "max_in_flight_requests_per_connection": MAX_IN_FLIGHT,
        }
        self._logs_in = str(self._options["security_protocol"]).startswith("SASL_")
        self._connection: Any = None
        self._attempt: Any = None

    @property
    def connected(self) -> bool:
        """Whether it may be asked: not before it is known who answers."""
        return self.identity_checked is not None and self._is_open

    @property
    def _is_open(self) -> bool:
        return self._connection is not None and bool(self._connection.connected)

    @property
    def is_held_back(self) -> bool:
        """By the broker's quota, or by bytes that are not written yet."""
        return self._connection is not None and bool(self._connection.paused)

    def version(self, api_key: int, highest: int) -> int | None:
        """The broker's newest version up to `highest`; null without the API or a connection."""
        if not self._is_open:
            return None
        offered = self._connection.broker_version_data.api_versions
        oldest, newest = offered.get(api_key, (0, -1))
        found = min(int(newest), highest)
        return found if found >= max(int(oldest), 0) else None

    def connect(self, seconds: float) -> Any:
        """Starts an attempt unless one is under way. Its Future never fails."""
        if self._attempt is None or self._attempt.is_done:
            seconds = max(seconds, LOGIN_SECONDS if self._logs_in else 0.0)
            self._attempt = self._loop.spawn(self._connect, seconds)
        return self._attempt

    async def _connect(self, seconds: float) -> None:
        try:
            await self._loop.within(seconds, self._open, time.monotonic() + seconds)
            found = NOT_CHECKED
            if self._identify is not None:
                found = await self._identify(self, seconds)
        except NoAnswerError as error:
            self._fail(error.outcome)
        except Exception as error:
            outcome = outcome_of(error)
            if (
                outcome == UNREACHABLE
                and self._logs_in
                and self._connection is not None
                and self._connection.broker_version_data is not None
            ):
                # Closed in the login: the library drops an answer that comes with the end.
                outcome = AUTHENTICATION_FAILED
            if outcome in (TIMED_OUT, UNREACHABLE) and await self._is_other_service():
                outcome = NOT_KAFKA
            self._fail(outcome)
        else:
            if found in (OK, NOT_CHECKED):
                self.connected_at, self.identity_checked = time.monotonic(), found == OK
            else:
                self._fail(found)

    async def _is_other_service(self) -> bool:
        """Whether a port that gave no answer to Kafka's protocol answers HTTP's, or with TLS.

        Asked at the first failure: a broker that hangs closes such a connection when it goes on.
        """
        if (
            self.failures
            or self._options["security_protocol"] != "PLAINTEXT"
            or self._options["proxy_url"]
        ):
            return self.outcome == NOT_KAFKA

        def ask() -> bool:
            with socket.create_connection((self.host, self.port), OTHER_SERVICE_SECONDS) as plain:
                plain.sendall(b"HEAD / HTTP/1.0\r\n\r\n")
                # Of TLS: an alert, as a server sends it that gets no handshake.
                return plain.recv(16).startswith((b"HTTP/", b"\x15\x03"))

        try:
            return bool(await self._loop.in_thread(ask))
        except Exception:
            # No answer, and names that are none.
            return False

    async def _open(self, timeout_at: float) -> None:
        """As kafka-python's manager does it, but for the name."""
        connection = KafkaConnection(self._loop.net, node_id=self.broker, **self._options)
        self._connection = connection
        with contextlib.ExitStack() as on_failure:
            transport = await self._make_transport(timeout_at)
            on_failure.callback(transport.close)
            try:
                await transport.handshake()
            except Exception as error:
                raise kafka_errors.KafkaConnectionError(f"Handshake failed: {error}") from None
            connection.connection_made(transport)
            # From here on, the connection closes it.
            on_failure.pop_all()
        await connection.initialize(timeout_at=timeout_at)
        await connection

    async def _make_transport(self, timeout_at: float) -> Any:
        net, options, addresses = self._loop.net, self._options, [self.host]
        if options["proxy_url"] is None:
            # The library would block the loop while it resolves the name.
            resolve = partial(socket.getaddrinfo, self.host, self.port, type=socket.SOCK_STREAM)
            found = await self._loop.in_thread(resolve)
            addresses = list(dict.fromkeys(str(address) for *_, (address, *_) in found))
        while True:
            # A broker may listen on one of several: each gets its share of the time.
            address, now = addresses.pop(0), time.monotonic()
            try:
                plain = await create_connection(
                    net,
                    address,
                    self.port,
                    options["socket_options"],
                    proxy_url=options["proxy_url"],
                    timeout_at=now + (timeout_at - now) / (len(addresses) + 1),
                )
                break
            except Exception:
                if not addresses:
                    raise
        if options["security_protocol"] not in {"SSL", "SASL_SSL"}:
            return KafkaTCPTransport(net, plain, host=self.host)
        tls = {key: value for key, value in options.items() if key.startswith("ssl_")}
        return KafkaSSLTransport(net, plain, host=self.host, **tls)

    async def ready(self, seconds: float) -> BrokerConnection:
        """Itself once it is connected. Raises NoAnswerError."""
        if not self.connected:
            await self._loop.wait([self.connect(seconds)], seconds + 0.1)
        if not self.connected:
            raise NoAnswerError(self.outcome)
        return self

    @property
    def failure(self) -> str:
        """Why it is not open."""
        return self.outcome if self.failures else UNREACHABLE

    async def ask(self, request: Any, seconds: float) -> Any:
        """Sends a request, raw or of kafka-python, and returns its answer. Raises NoAnswerError."""
        if not self._is_open:
            raise NoAnswerError(self.failure)
        deadline = time.monotonic() + seconds
        connection = self._connection
        # Held back by the broker's quota, or by bytes that are not yet written.
        while connection.paused and connection.connected:
            if time.monotonic() >= deadline:
                raise NoAnswerError("throttled")
            await self._loop.sleep(0.002)
        try:
            answer = await connection.send_request(
                request, request_timeout_ms=max((deadline - time.monotonic()) * 1000, 1.0)
            )
        except kafka_errors.IncompatibleBrokerVersion:
            raise NoAnswerError(UNSUPPORTED) from None
        except Exception as error:
            # A request that failed before it may have closed the connection already.
            if connection is self._connection:
                self._fail(outcome_of(error))
            raise NoAnswerError(self.outcome) from None
        self.outcome = OK
        self.failures = 0
        return answer

    def _fail(self, outcome: str) -> None:
        self.outcome = outcome
        self.failures += 1
        self.close()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        self.connected_at = self.identity_checked = None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.close()


class ConnectionPool:
    """One connection to each broker. `make` takes the broker, its host and its port."""

    def __init__(self, make: Callable[[int, str, int], BrokerConnection]) -> None:
        self.by_broker: dict[int, BrokerConnection] = {}
        self._make = make

    def get(self, broker: int, host: str, port: int) -> BrokerConnection:
        """The connection to a broker, which is a new one when its address has changed."""
        known = self.by_broker.get(broker)
        if known is None or (known.host, known.port) != (host, port):
            self.drop(broker)
            known = self._make(broker, host, port)
            self.by_broker[broker] = known
        return known

    def drop(self, broker: int) -> None:
        known = self.by_broker.pop(broker, None)
        if known is not None:
            known.close()

    def close(self) -> None:
        for connection in self.by_broker.values():
            connection.close()


class Network:
    """The event loop of one cluster and its connections. `options` are kafka-python's."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.loop = EventLoop(**options)
        self._options = options

    def pool(self, identify: Identify | None = None) -> ConnectionPool:
        make = partial(BrokerConnection, self.loop, self._options, identify=identify)
        return ConnectionPool(make)
