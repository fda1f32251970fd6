from __future__ import annotations

import socket
import threading
from http import HTTPStatus
from typing import Any

import pytest

from tidemark.collect.watchdog import END_SECONDS, RETRY_SECONDS, CollectorWatchdog, Key
from tidemark.local.receiver import WebhookReceiver

BLIND: Key = ("c", "no_broker")


def watchdog(ages: dict[Key, float], url: str = "http://127.0.0.1:1/s3cret") -> CollectorWatchdog:
    return CollectorWatchdog(url, 30.0, "k", lambda: ages, "http://runbooks.example")


def take(dog: CollectorWatchdog, now: float, *, success: bool = True) -> list[dict[str, Any]]:
    """What is due at `now`, with the receiver's answer."""
    due = dog.check(now)
    for key, _ in due:
        dog.record_post(key, now, success=success)
    return [body for _, body in due]


def test_it_fires_over_the_limit_repeats_and_resolves() -> None:
    ages = {BLIND: 5.0, ("c", "cannot_publish"): 1.0}
    dog = watchdog(ages)
    assert take(dog, 1_000.0) == []
    ages[BLIND] = 30.0
    (fired,) = take(dog, 1_025.0)
    alert = fired["alerts"][0]
    assert (fired["version"], fired["status"], alert["status"], alert["startsAt"]) == (
        "4",
        "firing",
        "firing",
        "1970-01-01T00:16:35.000Z",
    )
    assert alert["labels"] == {
        "alertname": "TidemarkCollectorBlind",
        "kafka_cluster": "c",
        "severity": "critical",
        "collector": "k",
        "reason": "no_broker",
    }
    assert alert["annotations"]["runbook_url"] == "http://runbooks.example#tidemarkcollectorblind"
    ages[BLIND] = 60.0
    assert take(dog, 1_055.0) == []
    (again,) = take(dog, 1_086.0)
    assert again["alerts"][0] == alert
    ages[BLIND] = 0.1
    (resolved,) = take(dog, 1_090.0)
    assert (resolved["status"], resolved["alerts"][0]["endsAt"]) == (
        "resolved",
        "1970-01-01T00:18:10.000Z",
    )
    assert resolved["alerts"][0]["fingerprint"] == alert["fingerprint"]
    assert take(dog, 1_091.0) == []


def test_what_the_receiver_did_not_take_is_posted_until_it_does() -> None:
    ages = {BLIND: 40.0}
    dog = watchdog(ages)
    tries = [second for second in range(60) if take(dog, 1_000.0 + second, success=second >= 20)]
    assert tries == [0, RETRY_SECONDS, 2 * RETRY_SECONDS, 3 * RETRY_SECONDS, 20]
    ages[BLIND] = 0.0
    assert [body["status"] for body in take(dog, 1_060.0, success=False)] == ["resolved"]
    assert take(dog, 1_061.0) == []
    assert [body["alerts"][0]["endsAt"] for body in take(dog, 1_065.0)] == [
        "1970-01-01T00:17:40.000Z"
    ]
    assert take(dog, 1_070.0) == []


def test_an_end_that_nobody_takes_is_given_up_in_time_and_a_new_alert_takes_its_place() -> None:
    ages = {BLIND: 40.0}
    dog = watchdog(ages)
    take(dog, 1_000.0)
    ages[BLIND] = 0.0
    take(dog, 1_010.0, success=False)
    ages[BLIND] = 31.0
    (fired,) = take(dog, 1_050.0, success=False)
    assert (fired["status"], fired["alerts"][0]["startsAt"]) == (
        "firing",
        "1970-01-01T00:16:59.000Z",
    )
    ages[BLIND] = 0.0
    take(dog, 1_060.0, success=False)
    assert take(dog, 1_060.0 + END_SECONDS + 1) == []


def test_over_a_real_connection_and_without_telling_the_address(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with WebhookReceiver() as receiver:
        dog = watchdog({BLIND: 40.0}, receiver.url + "s3cret")
        ((_, body),) = dog.check(1_000.0)
        receiver.answer = HTTPStatus.BAD_GATEWAY
        assert [dog._post(body), dog._post(body)] == [False, False]
        receiver.answer = HTTPStatus.OK
        assert dog._post(body)
        assert [each.name for each in receiver.alerts()] == ["TidemarkCollectorBlind"]
    assert not dog._post(body)
    told = capsys.readouterr().out
    assert told.count("webhook fails") == 2
    assert "HTTP 502" in told
    assert "s3cret" not in told


def test_a_receiver_that_points_nowhere_does_not_end_the_watch() -> None:
    """requests parses a redirect's address even where none is followed."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            client, _ = server.accept()
            with client:
                client.recv(65536)
                client.sendall(
                    b"HTTP/1.1 302 Found\r\nLocation: http://[\r\nContent-Length: 0\r\n\r\n"
                )

        threading.Thread(target=answer, daemon=True).start()
        assert not watchdog({BLIND: 40.0}, f"http://127.0.0.1:{server.getsockname()[1]}/")._post({})
