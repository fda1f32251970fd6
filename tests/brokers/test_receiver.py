from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus

import pytest
import requests

from tidemark_lab.brokers.receiver import WebhookReceiver

ALERT = {
    "status": "firing",
    "labels": {"alertname": "KafkaOffline", "severity": "critical"},
    "annotations": {"summary": "x"},
    "startsAt": "2026-11-21T09:47:01.736Z",
    "endsAt": "0001-01-01T00:00:00Z",
    "fingerprint": "5ada04512ffa1bbd",
}
PAYLOAD = {"version": "4", "status": "firing", "alerts": [ALERT, {**ALERT, "status": "resolved"}]}


@pytest.fixture
def receiver() -> Iterator[WebhookReceiver]:
    with WebhookReceiver() as running:
        yield running


def test_alerts_keep_their_order_and_arrival_time(receiver: WebhookReceiver) -> None:
    assert requests.post(receiver.url, json=PAYLOAD, timeout=5).status_code == HTTPStatus.OK
    first, second = receiver.alerts()
    assert (first.name, first.severity, first.status, second.status) == (
        "KafkaOffline",
        "critical",
        "firing",
        "resolved",
    )
    assert (first.starts_at, first.fingerprint) == ("2026-11-21T09:47:01.736Z", "5ada04512ffa1bbd")
    ((received_at, payload),) = receiver.deliveries()
    assert payload == PAYLOAD
    assert first.received_at == received_at


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"alerts": [{}]}', b'{"alerts": 3}', b"not json"]
)
def test_other_payloads_are_refused_and_not_kept(receiver: WebhookReceiver, body: bytes) -> None:
    assert requests.post(receiver.url, data=body, timeout=5).status_code == HTTPStatus.BAD_REQUEST
    assert receiver.alerts() == []


def test_a_receiver_can_be_made_to_fail(receiver: WebhookReceiver) -> None:
    receiver.answer = HTTPStatus.SERVICE_UNAVAILABLE
    assert (
        requests.post(receiver.url, json=PAYLOAD, timeout=5).status_code
        == HTTPStatus.SERVICE_UNAVAILABLE
    )
    assert receiver.deliveries() == []


def test_it_listens_on_this_machine_only(receiver: WebhookReceiver) -> None:
    assert receiver.url.startswith("http://127.0.0.1:")
