"""HTTP basic authentication against bcrypt hashes, as Prometheus' exporter-toolkit does it.

Passwords are checked one at a time, by turns of those who ask.
"""

from __future__ import annotations

import asyncio
import binascii
import hashlib
import hmac
import os
import secrets
import sys
import threading
from base64 import b64decode
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import bcrypt

# A hash takes 50 ms of a core and more.
MAX_WAITING: Final = 64
# Of each who asks.
MAX_OF_ONE: Final = 8

# Of the thread that computes them, 0 to 19.
NICENESS: Final = 10

# Answers that are remembered.
MAX_REMEMBERED: Final = 100
# bcrypt does not take more, and a password beyond it is wrong.
MAX_PASSWORD_BYTES: Final = 72
# Compared with where the user does not exist, so that both take as long.
_NOBODY: Final = "$2b$10$......................kdQsEnKTZ8yKGRTTCZm4hJxRVA1v9Gy"


class Logins:
    """Used by the server's thread."""

    def __init__(self) -> None:
        self.executor = ThreadPoolExecutor(1, "http-login", _run_behind_others)
        self._waiting: Counter[Hashable] = Counter()
        # One of each who waits is given to the executor, which takes them in their order.
        self._turns: dict[Hashable, asyncio.Lock] = {}

    async def check(self, who: Hashable, check: Callable[[], bool]) -> bool | None:
        """The answer of `check`; None where too many wait, so that it is not asked."""
        if self._waiting[who] >= MAX_OF_ONE or self._waiting.total() >= MAX_WAITING:
            return None
        self._waiting[who] += 1
        try:
            async with self._turns.setdefault(who, asyncio.Lock()):
                return await asyncio.get_running_loop().run_in_executor(self.executor, check)
        finally:
            self._waiting[who] -= 1
            if not self._waiting[who]:
                del self._waiting[who], self._turns[who]


def _run_behind_others() -> None:
    """Lowers the priority of this thread: strangers may keep it busy. On Linux, it has its own."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


class BasicAuthentication:
    """Checks the header Authorization. From any thread."""

    def __init__(self, users: Mapping[str, str]) -> None:
        self._users = dict(users)
        # Digests under a key of this process, so that its memory holds no password for long.
        self._key = secrets.token_bytes(32)
        # Apart, so that no number of wrong passwords displaces a right one.
        self._right: OrderedDict[bytes, None] = OrderedDict()
        self._wrong: OrderedDict[bytes, None] = OrderedDict()
        self._lock = threading.Lock()

    def known(self, header: str) -> bool | None:
        """The remembered answer; None where it is not known yet."""
        return self._recall(self._digest(header))

    def check(self, header: str) -> bool:
        digest = self._digest(header)
        answer = self._recall(digest)
        if answer is None:
            answer = self._compute(header)
            with self._lock:
                remembered = self._right if answer else self._wrong
                remembered[digest] = None
                if len(remembered) > MAX_REMEMBERED:
                    remembered.popitem(last=False)
        return answer

    def _recall(self, digest: bytes) -> bool | None:
        if digest in self._right:
            return True
        return False if digest in self._wrong else None

    def _digest(self, header: str) -> bytes:
        return hmac.new(self._key, header.encode("utf-8", "replace"), hashlib.sha256).digest()

    def _compute(self, header: str) -> bool:
        user, password = _credentials(header)
        if len(password) > MAX_PASSWORD_BYTES or b"\0" in password:
            return False
        expected = self._users.get(user)
        fits = bcrypt.checkpw(password, (expected or _NOBODY).encode())
        return fits and expected is not None


def _credentials(header: str) -> tuple[str, bytes]:
    """User and password; both empty where the header is no basic authorization."""
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return "", b""
    try:
        user, _, password = b64decode(encoded.strip(), validate=True).partition(b":")
        return user.decode(), password
    except (binascii.Error, ValueError):
        return "", b""
