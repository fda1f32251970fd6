"""Posts over HTTP: authorization, time-outs, signature, and which failures are worth another attempt."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import requests
from standardwebhooks.webhooks import EmptyWebhookSecretError, Webhook
from urllib3.exceptions import HTTPError

from tidemark import __version__
from tidemark.core.errors import ConfigError
from tidemark.settings import Receiver, Route

MAX_RETRY_AFTER_SECONDS: Final = 30.0
# Besides all from 500: the receiver was too slow, or has too much to do.
TRY_AGAIN: Final = frozenset({408, 425, 429})
# The content is at fault: malformed, too large, not understood.
CONTENT: Final = frozenset({400, 413, 422})
MAX_ANSWER_BYTES: Final = 512


class NotDeliveredError(Exception):
    """A post did not succeed. `again`: another attempt can help; `after_seconds`: what the receiver asked for.

    `status` is the HTTP status if there was an answer, and `text` the beginning of that answer.
    """

    def __init__(self, reason: str, *, again: bool, after_seconds: float | None = None, status: int | None = None, text: str = "") -> None:
        super().__init__(reason)
        self.again = again
        self.after_seconds = after_seconds
        self.status = status
        self.text = text

    @property
    def of_content(self) -> bool:
        """Whether fewer or other alerts might have been taken."""
        return self.status in CONTENT


class Answer(NamedTuple):
    """What a receiver said to a post that it took."""

    status: int
    text: str


class Transport(Protocol):
    """Brings one message to a receiver or raises NotDeliveredError."""

    def post(self, message_id: str, body: bytes) -> Any: ...


class Client:
    """A session with one receiver; used by one thread. Raises ConfigError where a file that is named cannot be read."""

    def __init__(self, route: Route) -> None:
        self._timeout = route.timeout_seconds
        self._route = route
        self._authorization = None if route.authorization_file is None else read(route, "authorization_file", route.authorization_file)
        if route.ca_file is not None:
            read(route, "ca_file", route.ca_file)
        self._ca_file = route.ca_file
        self._session = requests.Session()

    def post(self, url: str, body: bytes, headers: dict[str, str]) -> Answer:
        """Posts JSON once. Raises NotDeliveredError; no message of it contains the URL, which may hold a secret."""
        headers = {"Content-Type": "application/json", "User-Agent": f"tidemark/{__version__}", **headers}
        try:
            # Only the beginning of the answer is read: a receiver cannot make us hold it.
            with self._session.post(
                url,
                data=body,
                headers=headers,
                timeout=self._timeout,
                stream=True,
                allow_redirects=False,
                verify=True if self._ca_file is None else self._ca_file,
                auth=None if self._authorization is None else self._authorize,
            ) as answer:
                return _judge(answer)
        except requests.exceptions.SSLError:
            # A certificate may be mended at the other end.
            raise NotDeliveredError("the TLS certificate is not trusted", again=True) from None
        except (requests.ConnectionError, requests.Timeout) as error:
            raise NotDeliveredError(_reason(error), again=True) from None
        except (requests.RequestException, OSError) as error:
            raise NotDeliveredError(type(error).__name__, again=False) from None

    def _authorize(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Reads the file anew: tokens are replaced while we run. One that cannot be read for now leaves the last."""
        assert self._authorization is not None
        with suppress(ConfigError):
            self._authorization = read(self._route, "authorization_file", self._route.authorization_file)
        request.headers["Authorization"] = self._authorization
        return request


class WebhookTransport:
    """Posts to one webhook; used by one thread.

    The URL and the secret are read from their files at the start. Raises ConfigError where they cannot be.
    """

    def __init__(self, receiver: Receiver) -> None:
        self._url = receiver.url if receiver.url is not None else read(receiver, "url_file", receiver.url_file)
        self._webhook = _signer(receiver)
        self._client = Client(receiver)

    def post(self, message_id: str, body: bytes) -> Answer:
        """Posts once, signed where there is a secret. Raises NotDeliveredError."""
        headers = {"webhook-id": message_id}
        if self._webhook is not None:
            now = datetime.now(tz=UTC)
            headers["webhook-timestamp"] = str(int(now.timestamp()))
            headers["webhook-signature"] = self._webhook.sign(message_id, now, body.decode())
        return self._client.post(self._url, body, headers)


def _reason(error: BaseException) -> str:
    """The kind of failure and what the system says of it. The library's own text holds the address."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror and not isinstance(cause, requests.RequestException):
            return f"{type(error).__name__}: {cause.strerror}"
        cause = cause.__cause__ or cause.__context__
    return type(error).__name__


def _judge(answer: requests.Response) -> Answer:
    status, text = answer.status_code, _beginning(answer)
    if 200 <= status < 300:
        return Answer(status, text)
    again = status >= 500 or status in TRY_AGAIN
    raise NotDeliveredError(f"HTTP {status}", again=again, after_seconds=_retry_after(answer) if again else None, status=status, text=text)


def _beginning(answer: requests.Response) -> str:
    """What one read of the body gives, as one line; the rest is left, so that no receiver can make us hold or wait for it."""
    read1 = getattr(answer.raw, "read1", None)
    try:
        first = read1(MAX_ANSWER_BYTES, decode_content=True) if read1 is not None else b""
    except (HTTPError, OSError, ValueError):
        return ""
    return " ".join(bytes(first or b"").decode("utf-8", "replace").split())


def _retry_after(answer: requests.Response) -> float | None:
    """The Retry-After header in seconds, bounded; its other form, a date, is ignored."""
    text = answer.headers.get("Retry-After", "")
    return min(float(text), MAX_RETRY_AFTER_SECONDS) if text.isdigit() else None


def _signer(receiver: Receiver) -> Webhook | None:
    if receiver.secret_file is None:
        return None
    try:
        return Webhook(read(receiver, "secret_file", receiver.secret_file))
    except (ValueError, EmptyWebhookSecretError):
        raise ConfigError(
            f"configuration: receiver `{receiver.name}`: {receiver.secret_file} holds no signing secret; write whsec_ and base64."
        ) from None


def read(route: Route, option: str, path: str | None) -> str:
    """The text of a file that a receiver's option names. Raises ConfigError naming receiver, option and file."""
    assert path is not None
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"configuration: receiver `{route.name}`: cannot read {option} {path}: {reason}.") from None
    if not text:
        raise ConfigError(f"configuration: receiver `{route.name}`: {option} {path} is empty.")
    return text
