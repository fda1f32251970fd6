"""One connection to one broker, with its own time-out: what it does delays nobody else.

A request that is not answered in time closes the connection, so that a late answer can never be taken for another's.
"""

from __future__ import annotations

import contextlib
import socket
import time
from typing import Any, Final

from kafka import errors as kafka_errors
from kafka.net.connection import KafkaConnection
from kafka.net.inet import create_connection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport

from tidemark.collect.loop import Loop
from tidemark.core.events import OK, UNREACHABLE
from tidemark.kafka.client import outcome_of

# More requests than one pass sends to a broker at a time; kafka-python refuses the next one above it.
MAX_IN_FLIGHT: Final = 64


class LinkError(Exception):
    """A broker gave no answer; `outcome` is as in `events.BrokerAnswer`."""

    def __init__(self, outcome: str) -> None:
        super().__init__(outcome)
        self.outcome = outcome


class Link:
    """A connection that is opened in the background and closed by any failure. `options` are kafka-python's."""

    def __init__(
        self,
        loop: Loop,
        options: dict[str, Any],
        broker: int,
        host: str,
        port: int,
        rack: str | None = None,
    ) -> None:
        self.broker, self.host, self.port, self.rack = broker, host, port, rack
        self.outcome: str = UNREACHABLE
        # Failures in a row since it last answered.
        self.failures = 0
        self.connected_at: float | None = None
        self._loop = loop
        self._options = {
            **KafkaConnectionManager.DEFAULT_CONFIG,
            **options,
            "max_in_flight_requests_per_connection": MAX_IN_FLIGHT,
        }
        self._connection: Any = None
        self._connecting: Any = None

    @property
    def connected(self) -> bool:
        return self._connection is not None and bool(self._connection.connected)

    def version(self, api_key: int, highest: int) -> int | None:
        """The version to speak: the broker's newest up to `highest`; null when it lacks the API or is not connected."""
        if not self.connected:
            return None
        lowest_there, highest_there = self._connection.broker_version_data.api_versions.get(
            api_key, (0, -1)
        )
        found = min(int(highest_there), highest)
        return found if found >= max(int(lowest_there), 0) else None

    def connect(self, seconds: float) -> Any:
        """Starts to connect unless that is under way; the Future ends with the attempt and never fails."""
        if self._connecting is None or self._connecting.is_done:
            self._connecting = self._loop.spawn(self._connect, seconds)
        return self._connecting

    async def _connect(self, seconds: float) -> None:
        try:
            await self._loop.within(seconds, self._open, time.monotonic() + seconds)
        except Exception as error:
            self._failed(outcome_of(error))
        else:
            self.connected_at = time.monotonic()

    async def _open(self, timeout_at: float) -> None:
        connection = KafkaConnection(self._loop.net, node_id=self.broker, **self._options)
        self._connection = connection
        transport = None
        try:
            transport = await self._transport(timeout_at)
            connection.connection_made(transport)
            transport = None
            await connection.initialize(timeout_at=timeout_at)
            await connection
        finally:
            if transport is not None:
                transport.close()

    async def _transport(self, timeout_at: float) -> Any:
        """As kafka-python's manager does it, but with the name looked up in a thread: the library would block the loop."""
        proxy = self._options["proxy_url"]
        address = self.host
        if proxy is None:
            found = await self._loop.in_thread(
                lambda: socket.getaddrinfo(
                    self.host, self.port, socket.AF_UNSPEC, socket.SOCK_STREAM
                )
            )
            address = found[0][4][0]
        net = self._loop.net
        plain = await create_connection(
            net,
            address,
            self.port,
            self._options["socket_options"],
            proxy_url=proxy,
            timeout_at=timeout_at,
        )
        if self._options["security_protocol"] in {"SSL", "SASL_SSL"}:
            secrets = {key: value for key, value in self._options.items() if key.startswith("ssl_")}
            transport = KafkaSSLTransport(net, plain, host=self.host, **secrets)
        else:
            transport = KafkaTCPTransport(net, plain, host=self.host)
        try:
            await transport.handshake()
        except BaseException as error:
            # Cancelled when the time is over, too.
            transport.close()
            if not isinstance(error, Exception):
                raise
            raise kafka_errors.KafkaConnectionError(f"Handshake failed: {error}") from None
        return transport

    async def ask(self, request: Any, seconds: float) -> Any:
        """Sends a request (raw, or one of kafka-python's) and gives its answer. Raises LinkError; then the link is closed."""
        if not self.connected:
            raise LinkError(self.outcome if self.failures else UNREACHABLE)
        deadline = time.monotonic() + seconds
        connection = self._connection
        # Held back by the broker's quota, or by bytes not yet written.
        while connection.paused and connection.connected:
            if time.monotonic() >= deadline:
                raise LinkError("throttled")
            await self._loop.sleep(0.002)
        try:
            answer = await connection.send_request(
                request, request_timeout_ms=max((deadline - time.monotonic()) * 1000, 1.0)
            )
        except kafka_errors.IncompatibleBrokerVersion:
            raise LinkError("unsupported") from None
        except Exception as error:
            outcome = outcome_of(error)
            self._failed(outcome)
            raise LinkError(outcome) from None
        self.outcome = OK
        self.failures = 0
        return answer

    def _failed(self, outcome: str) -> None:
        self.outcome = outcome
        self.failures += 1
        self.close()

    def close(self) -> None:
        connection, self._connection, self.connected_at = self._connection, None, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.close()
