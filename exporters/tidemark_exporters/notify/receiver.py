"""Posts to a webhook: Standard Webhooks signature, time-outs, and which failures are worth another attempt."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

import requests
from standardwebhooks.webhooks import EmptyWebhookSecretError, Webhook

from tidemark import __version__
from tidemark.core.errors import ConfigError
from tidemark.settings import Receiver

MAX_RETRY_AFTER_SECONDS: Final = 30.0
TOO_MANY_REQUESTS: Final = 429


class NotDeliveredError(Exception):
    """A post did not succeed. `again`: another attempt can help; `after_seconds`: what the receiver asked for."""

    def __init__(self, reason: str, *, again: bool, after_seconds: float | None = None) -> None:
        super().__init__(reason)
        self.again = again
        self.after_seconds = after_seconds


class Transport(Protocol):
    """Brings one message to a receiver or raises NotDeliveredError."""

    def post(self, message_id: str, body: bytes) -> None: ...


class WebhookTransport:
    """A session with one receiver; used by one thread.

    The URL and the secret are read from their files at the start. Raises ConfigError where they cannot be.
    """

    def __init__(self, receiver: Receiver) -> None:
        self._url = receiver.url if receiver.url is not None else _read(receiver, "url_file", receiver.url_file)
        self._timeout = receiver.timeout_seconds
        self._webhook = _signer(receiver)
        self._session = requests.Session()

    def post(self, message_id: str, body: bytes) -> None:
        """Posts once. Raises NotDeliveredError; no message of it contains the URL, which may hold a secret."""
        headers = {"Content-Type": "application/json", "User-Agent": f"tidemark/{__version__}", "webhook-id": message_id}
        if self._webhook is not None:
            now = datetime.now(tz=UTC)
            headers["webhook-timestamp"] = str(int(now.timestamp()))
            headers["webhook-signature"] = self._webhook.sign(message_id, now, body.decode())
        try:
            # The answer's body is not read: a receiver cannot make us hold it.
            with self._session.post(
                self._url, data=body, headers=headers, timeout=self._timeout, stream=True, allow_redirects=False
            ) as answer:
                _judge(answer)
        except (requests.ConnectionError, requests.Timeout) as error:
            raise NotDeliveredError(type(error).__name__, again=True) from None
        except requests.RequestException as error:
            raise NotDeliveredError(type(error).__name__, again=False) from None


def _judge(answer: requests.Response) -> None:
    status = answer.status_code
    if 200 <= status < 300:
        return
    again = status >= 500 or status == TOO_MANY_REQUESTS
    raise NotDeliveredError(f"HTTP {status}", again=again, after_seconds=_retry_after(answer) if again else None)


def _retry_after(answer: requests.Response) -> float | None:
    """The Retry-After header in seconds, bounded; its other form, a date, is ignored."""
    text = answer.headers.get("Retry-After", "")
    return min(float(text), MAX_RETRY_AFTER_SECONDS) if text.isdigit() else None


def _signer(receiver: Receiver) -> Webhook | None:
    if receiver.secret_file is None:
        return None
    try:
        return Webhook(_read(receiver, "secret_file", receiver.secret_file))
    except (ValueError, EmptyWebhookSecretError):
        raise ConfigError(
            f"configuration: receiver `{receiver.name}`: {receiver.secret_file} holds no signing secret; write whsec_ and base64."
        ) from None


def _read(receiver: Receiver, option: str, path: str | None) -> str:
    assert path is not None
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"configuration: receiver `{receiver.name}`: cannot read {option} {path}: {reason}.") from None
    if not text:
        raise ConfigError(f"configuration: receiver `{receiver.name}`: {option} {path} is empty.")
    return text
