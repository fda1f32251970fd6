"""`tidemark check-config --test-receiver`: one notification, and the receiver's answer."""

from __future__ import annotations

import json
from http import HTTPStatus
from pathlib import Path

import pytest

from tests.delivery.services import free_port
from tests.verbs.run import Output, configured
from tidemark_lab.brokers.receiver import WebhookReceiver


def run(tmp_path: Path, notify: object, name: str = "hook", code: int = 0) -> Output:
    text = json.dumps({"notify": notify})
    return configured(tmp_path, text, "check-config", "--test-receiver", name, code=code)


def test_a_receiver_that_takes_it(tmp_path: Path) -> None:
    with WebhookReceiver() as hook:
        receiver = {"name": "hook", "url": hook.url + "s3cret", "severities": ["critical"]}
        printed = run(tmp_path, {"receivers": [receiver]}).out.splitlines()
        ((_, payload),) = hook.deliveries()
    (posted,) = payload["alerts"]
    assert posted["labels"] == {"alertname": "TidemarkTest", "severity": "info"}
    assert payload["groupLabels"] == {}
    assert printed[1].startswith("ok: receiver `hook` at 127.0.0.1:")
    assert "took the test notification: HTTP 200 after " in printed[1]
    assert "s3cret" not in "".join(printed)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (HTTPStatus.UNAUTHORIZED, "HTTP 401. It does not know who posts: check authorization_file"),
        (HTTPStatus.BAD_GATEWAY, "HTTP 502. Delivery would try again."),
        (HTTPStatus.GONE, "HTTP 410. Delivery would try again."),
    ],
)
def test_a_receiver_that_refuses_it(tmp_path: Path, status: HTTPStatus, expected: str) -> None:
    with WebhookReceiver() as hook:
        hook.answer = status
        printed = run(tmp_path, {"receivers": [{"name": "hook", "url": hook.url}]}, code=1).err
    assert expected in printed
    assert "tidemark: receiver `hook` did not take the test notification." in printed


def test_a_dead_instance_and_one_that_refuses(tmp_path: Path) -> None:
    with WebhookReceiver() as hook:
        # The instance answers 400: the post is no webhook payload.
        urls = [f"http://127.0.0.1:{free_port()}/s3cret", hook.url]
        printed = run(tmp_path, {"alertmanagers": [{"name": "am", "urls": urls}]}, "am", 1).err
    first, second = [line for line in printed.splitlines() if "warning: nothing" not in line][:2]
    assert first.endswith(
        "did not take the test notification: ConnectionError: Connection refused (time-out 10 s)."
    )
    assert "s3cret" not in first
    assert "HTTP 400. It does not understand the payload" in second


def test_a_receiver_that_is_not_configured(tmp_path: Path) -> None:
    receivers = {"receivers": [{"name": "hook", "url": "http://127.0.0.1:1/"}]}
    printed = run(tmp_path, receivers, "hok", 2).err
    assert "there is no receiver `hok`; there are: hook." in printed
