"""Posts JSON to one address: authorization, time-outs, signature, and which failures may pass."""

from __future__ import annotations

import time
from base64 import b64decode
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from urllib.parse import urlsplit

import requests
from urllib3.exceptions import HTTPError

from tidemark import __version__
from tidemark.core.errors import ConfigError
from tidemark.settings import Alertmanager, Receiver, Route
from tidemark.settings.files import PIPE_SECONDS, load_authorities, read_line, read_text
from tidemark.settings.forms import url_problem
from tidemark.web.deadline import BoundedAdapter, Deadline
from tidemark.web.hidden import without_secrets

if TYPE_CHECKING:
    from standardwebhooks.webhooks import Webhook

ALERTMANAGER_PATH: Final = "/api/v2/alerts"
# Bounds on Retry-After.
MIN_RETRY_AFTER_SECONDS: Final = 0.5
MAX_RETRY_AFTER_SECONDS: Final = 30.0
# The content is at fault: malformed, too large, not understood. No other answer is a refusal: a
# token, an address or a proxy on the way may be mended.
CONTENT: Final = frozenset({400, 413, 422})
MAX_ANSWER_BYTES: Final = 512


class NotDeliveredError(Exception):
    """A post did not succeed.

    `after_seconds`: when the receiver asks to try again. `status` is the HTTP status where there
    was an answer, and `text` the beginning of that answer. `refused`: whether this content never
    succeeds, only fewer or other alerts; without it, the status says so.
    """

    def __init__(
        self,
        reason: str,
        *,
        after_seconds: float | None = None,
        status: int | None = None,
        text: str = "",
        refused: bool = False,
    ) -> None:
        super().__init__(reason)
        self.after_seconds = after_seconds
        self.status = status
        self.text = text
        self.refused = refused or status in CONTENT


class Answer(NamedTuple):
    """The answer to a post that was taken."""

    status: int
    text: str


class Client(Protocol):
    """Posts to one address, or raises NotDeliveredError. `name` labels its metrics and logs."""

    name: str

    def post(self, body: bytes, message_id: str | None) -> object:
        """Posts once. The receiver sees the id, if any, in the header webhook-id."""


class _Session(requests.Session):
    """Follows no redirect: the library would read all of its body and parse its address first."""

    def get_redirect_target(self, _resp: requests.Response) -> str | None:
        return None


class HttpClient:
    """A session with one address, used by one thread.

    Secrets and the CA file are read at the start. Raises ConfigError where one cannot be.
    """

    def __init__(
        self, route: Route, url: str, name: str | None = None, signer: Webhook | None = None
    ) -> None:
        self._route, self._url, self._signer = route, url, signer
        self.name = route.name if name is None else name
        self._authorization = None if route.authorization_file is None else _authorization(route)
        if route.ca_file is not None:
            # The TLS library reads it for each connection.
            _read(route, "ca_file", load_authorities)
        self._session = _Session()
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, BoundedAdapter())
        # host:port alone: the rest of an address may be a secret.
        self.host = _host(url)

    def post(self, body: bytes, message_id: str | None) -> Answer:
        """Posts once, signed where there is a secret. Raises NotDeliveredError.

        No message of it, and no text of an answer, contains the URL, which may hold a secret.
        """
        seconds = self._route.timeout_seconds
        deadline = Deadline(seconds)
        try:
            with deadline.running():
                return self._post(body, message_id, deadline)
        except NotDeliveredError as error:
            if deadline.expired and error.status is None:
                raise NotDeliveredError(
                    f"ReadTimeout: no whole answer within {seconds:g} s"
                ) from None
            raise

    def _post(self, body: bytes, message_id: str | None, deadline: Deadline) -> Answer:
        try:
            # Only the beginning of the answer is read: a receiver cannot make us hold it.
            with self._session.post(
                self._url,
                data=body,
                headers=self._headers(body, message_id),
                timeout=self._route.timeout_seconds,
                stream=True,
                verify=True if self._route.ca_file is None else self._route.ca_file,
                # Without it the library would send credentials of ~/.netrc.
                auth=self._authorize,
            ) as answer:
                if deadline.expired:
                    # Headers that were cut off read as complete ones.
                    raise NotDeliveredError("the headers were cut off")
                return self._judge(answer)
        except requests.exceptions.SSLError:
            raise NotDeliveredError("the TLS certificate is not trusted") from None
        except (OSError, ValueError, HTTPError) as error:
            raise NotDeliveredError(_reason(error)) from None

    def _headers(self, body: bytes, message_id: str | None) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "User-Agent": f"tidemark/{__version__}"}
        if message_id is not None:
            headers["webhook-id"] = message_id
            if self._signer is not None:
                now = datetime.now(tz=UTC)
                headers["webhook-timestamp"] = str(int(now.timestamp()))
                headers["webhook-signature"] = self._signer.sign(message_id, now, body.decode())
        return headers

    def _authorize(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Reads the file again, as tokens are replaced. An unusable file changes nothing."""
        if self._authorization is not None:
            with suppress(ConfigError):
                self._authorization = _authorization(self._route, pipe_seconds=0.0)
            request.headers["Authorization"] = self._authorization
        return request

    def _judge(self, answer: requests.Response) -> Answer:
        """Raises NotDeliveredError. Receivers often answer with what they were sent."""
        status = answer.status_code
        text = without_secrets(_beginning(answer), self._url, self._authorization)
        if 200 <= status < 300:
            return Answer(status, text)
        raise NotDeliveredError(
            f"HTTP {status}", after_seconds=_retry_after(answer), status=status, text=text
        )


def make_clients(route: Route) -> list[HttpClient]:
    """One for a webhook, one for each instance of a set of Alertmanagers. Raises ConfigError."""
    if isinstance(route, Alertmanager):
        return [
            HttpClient(
                route,
                url.rstrip("/").removesuffix(ALERTMANAGER_PATH) + ALERTMANAGER_PATH,
                f"{route.name}/{_host(url)}",
            )
            for url in route.urls
        ]
    assert isinstance(route, Receiver)
    url = _address(route) if route.url is None else route.url
    return [HttpClient(route, url, signer=_signer(route))]


def _host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


def _reason(error: BaseException) -> str:
    """The kind of failure and the system's text. The library's own text holds the address."""
    cause: BaseException | None = error
    while cause is not None:
        text = cause.strerror if isinstance(cause, OSError) else None
        if text and not isinstance(cause, requests.RequestException):
            return f"{type(error).__name__}: {text}"
        cause = cause.__cause__ or cause.__context__
    return type(error).__name__


def _beginning(answer: requests.Response) -> str:
    """One read of the body as one line; the rest is left, so that no receiver makes us wait."""
    read1 = getattr(answer.raw, "read1", None)
    try:
        first = read1(MAX_ANSWER_BYTES, decode_content=True) if read1 is not None else b""
    except (HTTPError, OSError, ValueError):
        return ""
    return " ".join(bytes(first or b"").decode("utf-8", "replace").split())


def _retry_after(answer: requests.Response) -> float | None:
    """Retry-After (seconds, or a date) in seconds from now, bounded; None without one."""
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
    # The collector's watchdog does without, on machines where it is not installed.
    from standardwebhooks.webhooks import EmptyWebhookSecretError, Webhook

    secret = _read(receiver, "secret_file", read_text)
    try:
        # The library ignores what is no base64, and would sign with something else.
        b64decode(secret.removeprefix("whsec_"), validate=True)
        return Webhook(secret)
    except (ValueError, EmptyWebhookSecretError):
        raise _error(
            receiver, "secret_file", "it holds no signing secret; write whsec_ and base64"
        ) from None


def _address(receiver: Receiver) -> str:
    url: str = _read(receiver, "url_file", read_text)
    problem = url_problem(url)
    if problem is not None:
        raise _error(receiver, "url_file", problem)
    return url


def _authorization(route: Route, pipe_seconds: float = PIPE_SECONDS) -> Any:
    return _read(route, "authorization_file", partial(read_line, pipe_seconds=pipe_seconds))


def _read(route: Route, option: str, read: Callable[[str], Any]) -> Any:
    """What a file that an option names holds. Raises ConfigError."""
    try:
        return read(getattr(route, option))
    except OSError as error:
        raise _error(route, option, f"cannot read the file: {error.strerror}") from None


def _error(route: Route, option: str, problem: str) -> ConfigError:
    """Without the path, in whose place a secret may be."""
    return ConfigError(f"configuration: receiver `{route.name}`: {option}: {problem}.")
