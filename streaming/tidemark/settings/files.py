"""Files that a configuration names, certificates too: whatever is at the path, reading it ends.

/dev/zero has no end, and opening a FIFO waits for a writer. Certificates and keys are loaded once
before a connection needs them: a library would fail at the first handshake, in OpenSSL's own words,
or ask the terminal for a password. Every failure is an OSError with the reason in `strerror`.
"""

from __future__ import annotations

import errno
import os
import select
import ssl
import stat
import time
from pathlib import Path
from typing import Final

# Of a secret, an address or a token.
MAX_SECRET_BYTES: Final = 64 * 1024
# A pipe, such as /dev/fd/63 of a shell's <(…), has this long to end. A decryption takes seconds.
PIPE_SECONDS: Final = 15.0
_PIECE_BYTES: Final = 64 * 1024


def read_bounded(
    path: str | Path, max_bytes: int = MAX_SECRET_BYTES, *, pipe_seconds: float = PIPE_SECONDS
) -> bytes:
    """The content of a file or of a pipe. Raises OSError, also where it is larger or does not end.

    A pipe gives its content once.
    """
    deadline = time.monotonic() + pipe_seconds
    descriptor = _open(path)
    try:
        may_wait = not stat.S_ISREG(os.fstat(descriptor).st_mode)
        content = bytearray()
        while len(content) <= max_bytes:
            if may_wait:
                _wait_readable(descriptor, deadline)
            piece = os.read(descriptor, _PIECE_BYTES)
            if not piece:
                return bytes(content)
            content += piece
    finally:
        os.close(descriptor)
    raise OSError(errno.EFBIG, f"it is larger than {max_bytes} bytes")


def read_text(
    path: str | Path, max_bytes: int = MAX_SECRET_BYTES, *, pipe_seconds: float = PIPE_SECONDS
) -> str:
    """The text of a secret or an address, without blanks around it. Raises OSError."""
    try:
        text = read_bounded(path, max_bytes, pipe_seconds=pipe_seconds).decode().strip()
    except UnicodeDecodeError:
        raise OSError(errno.EINVAL, "it is not UTF-8 text") from None
    if not text:
        raise OSError(errno.EINVAL, "it is empty")
    return text


def read_line(
    path: str | Path, max_bytes: int = MAX_SECRET_BYTES, *, pipe_seconds: float = PIPE_SECONDS
) -> str:
    """A text for a header or a token. Checked here: a library that refuses it would print it."""
    text = read_text(path, max_bytes, pipe_seconds=pipe_seconds)
    if not (text.isascii() and text.isprintable()):
        raise OSError(errno.EINVAL, "it is not one line of printable ASCII")
    return text


def check_opens(path: str | Path) -> None:
    """Raises OSError where `read_bounded` could not even open it."""
    os.close(_open(path))


def check_regular(path: str | Path) -> None:
    """Raises OSError where a library could not read the file, or would wait in it for ever."""
    mode = Path(_without_nul(path)).stat().st_mode
    if stat.S_ISDIR(mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
    check_opens(path)


def _open(path: str | Path) -> int:
    # Without O_NONBLOCK, opening a FIFO waits for its writer. It does not affect regular files.
    return os.open(_without_nul(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)


def _wait_readable(descriptor: int, deadline: float) -> None:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
        raise OSError(errno.ETIMEDOUT, "it is a pipe that does not end")


def _without_nul(path: str | Path) -> str | Path:
    # The system's calls raise ValueError.
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "the path contains a NUL character")
    return path


def load_authorities(path: str | Path, context: ssl.SSLContext | None = None) -> None:
    """Into the context, or only to see whether the file has any."""
    check_regular(path)
    try:
        (context or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)).load_verify_locations(path)
    except ssl.SSLError:
        raise OSError(
            errno.EINVAL,
            "it holds no certificate as PEM text; a Java keystore is converted by "
            "`keytool -exportcert -rfc`",
        ) from None


def load_pair(
    context: ssl.SSLContext, certificate: str | Path, key: str | Path, password: str = ""
) -> None:
    """A certificate and its key into the context, which may be in use."""
    for path in (certificate, key):
        check_regular(path)
    try:
        # Without a function, OpenSSL asks for the password at the terminal.
        context.load_cert_chain(certificate, key, lambda: password)
    except ssl.SSLError as error:
        # OpenSSL's other reasons differ between versions.
        reason = "no certificate or no key as PEM text, or the key has another password"
        if error.reason == "KEY_VALUES_MISMATCH":
            reason = "the key does not belong to the certificate"
        raise OSError(errno.EINVAL, reason) from None
    except ValueError:
        raise OSError(errno.EINVAL, "the password of the key is too long") from None
