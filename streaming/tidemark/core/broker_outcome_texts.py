"""What the outcome of a broker in a pass says of it: one text for every log, screen and alert."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from tidemark.core.events import (
    AUTHENTICATION_FAILED,
    CONTROLLER_LISTENER,
    NOT_KAFKA,
    OK,
    OTHER_BROKER,
    REFUSED,
    SHARED_ADDRESS,
    TIMED_OUT,
    TLS_HANDSHAKE_FAILED,
    UNLISTED,
    UNREACHABLE,
    BrokerAnswer,
)

_MEANINGS: Final = {
    REFUSED: "no process listens on its port",
    TIMED_OUT: "requests to it time out; the broker hangs, or the network path does",
    OTHER_BROKER: "another broker answers at the address that it gives to clients",
    UNLISTED: "no broker lists it, and replicas are assigned to it",
    UNREACHABLE: "no connection is possible; its host, name or network path is gone",
    NOT_KAFKA: "what answers there does not speak Kafka's protocol; "
    "its port is one of HTTP, of TLS or of another service",
    CONTROLLER_LISTENER: "a listener of controllers answers there, which serves no clients; "
    "give the address of a broker's listener",
    SHARED_ADDRESS: "other brokers give clients the same address, and this user may not ask "
    "who answers there",
    AUTHENTICATION_FAILED: "it refuses the credentials; check the SASL mechanism, the user, and "
    "the file of its password, which each connection reads again",
    TLS_HANDSHAKE_FAILED: "the TLS handshake fails; check the security protocol, and the files of "
    "certificates, which each connection reads again",
}
# In place of an outcome, of brokers that answer: to be looked at, and no failure.
ONE_ADDRESS: Final = "one address"
NOT_CHECKED: Final = "identity not checked"
WARNINGS: Final = (ONE_ADDRESS, NOT_CHECKED)


def meaning_of(outcome: str) -> str:
    """What an outcome that is not OK says of a broker; the end of a sentence."""
    return _MEANINGS.get(outcome, "it answers without a usable result")


class BrokerFinding(NamedTuple):
    """Why brokers, or what else has an address, cannot be watched, or not be told apart there."""

    subject: str
    address: str
    outcome: str
    meaning: str

    def __str__(self) -> str:
        return f"{self.subject} at {self.address} ({self.outcome}): {self.meaning}"


def broker_findings(answers: Sequence[BrokerAnswer]) -> Iterator[BrokerFinding]:
    """Of the brokers of one pass: who gives no answer, addresses of several, and who is unproven.

    At most two for each broker, and one.
    """
    by_address: dict[str, list[int]] = {}
    for each in answers:
        address = f"{each.host or '?'}:{each.port or '?'}"
        by_address.setdefault(address, []).append(each.broker)
        if each.outcome != OK:
            yield BrokerFinding(
                f"broker {each.broker}", address, each.outcome, meaning_of(each.outcome)
            )
    for address, brokers in by_address.items():
        if len(brokers) > 1 and not address.startswith("?"):
            yield BrokerFinding(
                f"brokers {', '.join(map(str, sorted(brokers)))}",
                address,
                ONE_ADDRESS,
                "at most one of them can answer there; check their advertised.listeners",
            )
    answering = [each for each in answers if each.outcome == OK]
    unproven = [each.broker for each in answering if each.identity_checked is False]
    if unproven:
        # Where none can be asked, the line stays the same whoever comes and goes.
        is_every = len(unproven) == len(answering)
        yield BrokerFinding(
            "every broker that answers" if is_every else f"brokers {', '.join(map(str, unproven))}",
            "its address",
            NOT_CHECKED,
            "it answers, which does not show that it is the broker of this number; asking needs "
            "Kafka 4.4, or DescribeConfigs on the cluster and Kafka 0.11",
        )
