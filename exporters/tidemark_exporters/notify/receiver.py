"""Posts over HTTP: authorization, time-outs, signature, and which failures are worth another attempt."""

from __future__ import annotations

import re
import time
from base64 import b64decode
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import requests
from standardwebhooks.webhooks import EmptyWebhookSecretError, Webhook
from urllib3.exceptions import HTTPError

from tidemark import __version__
from tidemark.core.errors import ConfigError
from tidemark.settings import Receiver, Route

# What a receiver asks for by Retry-After, within bounds.
MIN_RETRY_AFTER_SECONDS: Final = 0.5
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

    def __init__(
        self,
        reason: str,
        *,
        again: bool,
        after_seconds: float | None = None,
        status: int | None = None,
        text: str = "",
    ) -> None:
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


class _Session(requests.Session):
    """Follows no redirect, nor looks at one: even told not to, the library would read all of its body and parse its address."""

    def get_redirect_target(self, _resp: requests.Response) -> str | None:
        return None


class Client:
    """A session with one receiver; used by one thread. Raises ConfigError where a file that is named cannot be read."""

    def __init__(self, route: Route) -> None:
        self._timeout = route.timeout_seconds
        self._route = route
        self._authorization = None if route.authorization_file is None else _authorization(route)
        if route.ca_file is not None:
            read(route, "ca_file", route.ca_file)
        self._ca_file = route.ca_file
        self._session = _Session()

    def post(self, url: str, body: bytes, headers: dict[str, str]) -> Answer:
        """Posts JSON once. Raises NotDeliveredError; no message of it contains the URL, which may hold a secret.

        Only an answer says no: what else goes wrong (no route, a CA file that is being replaced) is worth another attempt.
        """
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"tidemark/{__version__}",
            **headers,
        }
        try:
            # Only the beginning of the answer is read: a receiver cannot make us hold it.
            with self._session.post(
                url,
                data=body,
                headers=headers,
                timeout=self._timeout,
                stream=True,
                verify=True if self._ca_file is None else self._ca_file,
                auth=None if self._authorization is None else self._authorize,
            ) as answer:
                return _judge(answer)
        except requests.exceptions.SSLError:
            raise NotDeliveredError("the TLS certificate is not trusted", again=True) from None
        except (OSError, ValueError, HTTPError) as error:
            raise NotDeliveredError(_reason(error), again=True) from None

    def _authorize(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Reads the file anew: tokens are replaced while we run. One that cannot be read or sent for now leaves the last."""
        assert self._authorization is not None
        with suppress(ConfigError):
            self._authorization = _authorization(self._route)
        request.headers["Authorization"] = self._authorization
        return request


class WebhookTransport:
    """Posts to one webhook; used by one thread.

    The URL and the secret are read from their files at the start. Raises ConfigError where they cannot be.
    """

    def __init__(self, receiver: Receiver) -> None:
        self._url = receiver.url if receiver.url is not None else _address(receiver)
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
        if (
            isinstance(cause, OSError)
            and cause.strerror
            and not isinstance(cause, requests.RequestException)
        ):
            return f"{type(error).__name__}: {cause.strerror}"
        cause = cause.__cause__ or cause.__context__
    return type(error).__name__


def _judge(answer: requests.Response) -> Answer:
    status, text = answer.status_code, _beginning(answer)
    if 200 <= status < 300:
        return Answer(status, text)
    again = status >= 500 or status in TRY_AGAIN
    raise NotDeliveredError(
        f"HTTP {status}",
        again=again,
        after_seconds=_retry_after(answer) if again else None,
        status=status,
        text=text,
    )


def _beginning(answer: requests.Response) -> str:
    """What one read of the body gives, as one line; the rest is left, so that no receiver can make us hold or wait for it."""
    read1 = getattr(answer.raw, "read1", None)
    try:
        first = read1(MAX_ANSWER_BYTES, decode_content=True) if read1 is not None else b""
    except (HTTPError, OSError, ValueError):
        return ""
    return " ".join(bytes(first or b"").decode("utf-8", "replace").split())


def _retry_after(answer: requests.Response) -> float | None:
    """The Retry-After header (seconds, or a date) in seconds from now, bounded; None where it says nothing."""
    text = answer.headers.get("Retry-After", "")
    try:
        seconds = (
            float(text)
            if text.isascii() and text.isdecimal()
            else parsedate_to_datetime(text).timestamp() - time.time()
        )
    except (ValueError, OverflowError):
        return None
    return min(max(seconds, MIN_RETRY_AFTER_SECONDS), MAX_RETRY_AFTER_SECONDS)


def _signer(receiver: Receiver) -> Webhook | None:
    if receiver.secret_file is None:
        return None
    secret = read(receiver, "secret_file", receiver.secret_file)
    try:
        # The library passes over what is no base64, and would sign with something else.
        b64decode(secret.removeprefix("whsec_"), validate=True)
        return Webhook(secret)
    except (ValueError, EmptyWebhookSecretError):
        raise ConfigError(
            f"configuration: receiver `{receiver.name}`: {receiver.secret_file} holds no signing secret; write whsec_ and base64."
        ) from None


def _address(receiver: Receiver) -> str:
    url = read(receiver, "url_file", receiver.url_file)
    if not re.fullmatch(r"https?://[^/\s]\S*", url):
        raise ConfigError(
            f"configuration: receiver `{receiver.name}`: url_file {receiver.url_file} holds no http:// or https:// address."
        )
    return url


def _authorization(route: Route) -> str:
    """The header's value. Checked here: a library that refuses it would print it."""
    text = read(route, "authorization_file", route.authorization_file)
    if not (text.isascii() and text.isprintable()):
        where = f"authorization_file {route.authorization_file}"
        raise ConfigError(
            f"configuration: receiver `{route.name}`: {where} is not one line of printable ASCII."
        )
    return text


def read(route: Route, option: str, path: str | None) -> str:
    """The text of a file that a receiver's option names. Raises ConfigError naming receiver, option and file."""
    assert path is not None
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(
            f"configuration: receiver `{route.name}`: cannot read {option} {path}: {reason}."
        ) from None
    if not text:
        raise ConfigError(f"configuration: receiver `{route.name}`: {option} {path} is empty.")
    return text
