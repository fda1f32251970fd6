"""Passwords that are checked: one at a time, by turns of those who ask."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

# A hash takes 50 ms of a core and more.
MAX_WAITING: Final = 64
# Of each who asks.
MAX_OF_ONE: Final = 8


class Logins:
    """Used by the server's thread."""

    def __init__(self) -> None:
        self.executor = ThreadPoolExecutor(1, "http-login")
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
