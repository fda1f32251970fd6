from __future__ import annotations

import socket
import threading
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from tests.collect.socket_answers import serving, text
from tidemark.collect import watchdog as watchdog_module
from tidemark.collect.watchdog import (
    END_SECONDS,
    RETRY_SECONDS,
    CollectorWatchdog,
    Key,
    watchdog_client,
)
from tidemark.core.errors import ConfigError
from tidemark.settings import Collect
from tidemark_lab.brokers.receiver import WebhookReceiver

BLIND: Key = ("c", "no_broker")


def watchdog(ages: dict[Key, float], url: str = "http://127.0.0.1:1/s3cret") -> CollectorWatchdog:
    client = watchdog_client(Collect(watchdog_url=url))
    assert client is not None
    return CollectorWatchdog(client, 30.0, "k", lambda: ages, "http://export.example/")


def post(dog: CollectorWatchdog, now: float, *, success: bool = True) -> list[dict[str, Any]]:
    """Posts the bodies due at `now`, and records the receiver's answer."""
    due = dog.check(now)
    for key, _ in due:
        dog.record_post(key, now, success=success)
    return [body for _, body in due]


def test_an_alert_fires_at_the_limit_repeats_and_resolves() -> None:
    ages = {BLIND: 5.0, ("c", "cannot_publish"): 1.0}
    dog = watchdog(ages)
    assert post(dog, 1_000.0) == []
    ages[BLIND] = 30.0
    (fired,) = post(dog, 1_025.0)
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
    assert alert["annotations"]["runbook_url"] == (
        "http://export.example/docs/runbooks/tidemarkcollectorblind?cluster=c"
    )
    ages[BLIND] = 60.0
    assert post(dog, 1_055.0) == []
    (again,) = post(dog, 1_086.0)
    assert again["alerts"][0] == alert
    ages[BLIND] = 0.1
    (resolved,) = post(dog, 1_090.0)
    assert (resolved["status"], resolved["alerts"][0]["endsAt"]) == (
        "resolved",
        "1970-01-01T00:18:10.000Z",
    )
    assert resolved["alerts"][0]["fingerprint"] == alert["fingerprint"]
    assert post(dog, 1_091.0) == []


def test_a_post_is_repeated_until_the_receiver_accepts_it() -> None:
    ages = {BLIND: 40.0}
    dog = watchdog(ages)
    tries = [second for second in range(60) if post(dog, 1_000.0 + second, success=second >= 20)]
    assert tries == [0, RETRY_SECONDS, 2 * RETRY_SECONDS, 3 * RETRY_SECONDS, 20]
    ages[BLIND] = 0.0
    assert [body["status"] for body in post(dog, 1_060.0, success=False)] == ["resolved"]
    assert post(dog, 1_061.0) == []
    assert [body["alerts"][0]["endsAt"] for body in post(dog, 1_065.0)] == [
        "1970-01-01T00:17:40.000Z"
    ]
    assert post(dog, 1_070.0) == []


def test_an_undelivered_end_expires_or_is_replaced_by_a_new_alert() -> None:
    ages = {BLIND: 40.0}
    dog = watchdog(ages)
    post(dog, 1_000.0)
    ages[BLIND] = 0.0
    post(dog, 1_010.0, success=False)
    ages[BLIND] = 31.0
    (fired,) = post(dog, 1_050.0, success=False)
    assert (fired["status"], fired["alerts"][0]["startsAt"]) == (
        "firing",
        "1970-01-01T00:16:59.000Z",
    )
    ages[BLIND] = 0.0
    post(dog, 1_060.0, success=False)
    assert post(dog, 1_060.0 + END_SECONDS + 1) == []


def test_posts_over_a_connection_never_log_the_address(
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
    logged = capsys.readouterr().out
    assert logged.count("webhook fails") == 2
    assert "HTTP 502" in logged
    assert "s3cret" not in logged


def test_a_redirect_to_a_malformed_address_is_a_failed_post() -> None:
    """requests parses the address of a redirect, even if it does not follow it."""
    redirect = b"HTTP/1.1 302 Found\r\nLocation: http://[\r\nContent-Length: 0\r\n\r\n"
    with serving(text(redirect)) as endpoint:
        assert not watchdog({BLIND: 40.0}, endpoint.url)._post({})


def test_the_address_and_the_token_may_come_from_files(tmp_path: Path) -> None:
    url, token = tmp_path / "url", tmp_path / "token"
    with WebhookReceiver() as receiver:
        url.write_text(receiver.url + "s3cret\n")
        token.write_text("Bearer s3cret")
        options = Collect(watchdog_url_file=str(url), watchdog_authorization_file=str(token))
        client = watchdog_client(options)
        assert client is not None
        dog = CollectorWatchdog(client, 30.0, "k", lambda: {BLIND: 40.0}, "http://export.example/")
        ((_, body),) = dog.check(1_000.0)
        assert dog._post(body)
        assert [each.name for each in receiver.alerts()] == ["TidemarkCollectorBlind"]
    missing = Collect(watchdog_url="http://a", watchdog_ca_file=str(tmp_path / "absent"))
    with pytest.raises(ConfigError, match=r"collect\.watchdog.*ca_file"):
        watchdog_client(missing)
    assert watchdog_client(Collect()) is None


def test_an_endless_answer_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog_module, "POST_SECONDS", 0.5)
    ended = threading.Event()
    sent = 0

    def answer(client: socket.socket) -> None:
        nonlocal sent
        with suppress(OSError):
            client.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://a\r\n\r\n")
            for _ in range(1_000):
                client.sendall(b"x" * 100_000)
                sent += 100_000
        ended.set()

    with serving(answer) as endpoint:
        assert not watchdog({BLIND: 40.0}, endpoint.url)._post({})
        assert ended.wait(20)
    assert sent < 50_000_000
