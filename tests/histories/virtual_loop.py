"""An event loop without sockets and threads: time passes only while there is nothing to do."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from itertools import count
from typing import Any

from kafka.future import Future

from tidemark.collect.connect.event_loop import EventLoop, complete


class VirtualLoop(EventLoop):
    """`move` is called with each new time. Errors of spawned work end whatever runs the loop."""

    def __init__(self, now: float, move: Callable[[float], None]) -> None:
        self.now = now
        self._move = move
        # Coroutines, each to be resumed.
        self._ready: deque[Any] = deque()
        # When, in which order, and what is completed then.
        self._timers: list[tuple[float, int, Any]] = []
        self._order = count()

    def run(self, work: Callable[..., Coroutine[Any, Any, Any]], *arguments: Any) -> Any:
        future = self.spawn(work, *arguments)
        while not future.is_done:
            assert self._turn(math.inf), "nothing would ever happen"
        return future.value

    def advance(self, until: float) -> None:
        """Everything that happens up to a time; none where that is over."""
        while self._turn(until):
            pass
        self._pass(until)

    def spawn(self, work: Callable[..., Coroutine[Any, Any, Any]], *arguments: Any) -> Any:
        future = Future()

        async def body() -> None:
            future.success(await work(*arguments))

        self._ready.append(body())
        return future

    async def within(
        self, seconds: float, work: Callable[..., Coroutine[Any, Any, Any]], *arguments: Any
    ) -> Any:
        future = self.spawn(work, *arguments)
        task = self._ready[-1]
        if not await self.wait([future], seconds):
            task.close()
            raise TimeoutError("timed out")
        return future.value

    def sleep(self, seconds: float) -> Any:
        over = Future()
        heapq.heappush(self._timers, (self.now + max(seconds, 0.0), next(self._order), over))
        return over

    async def wait(self, futures: Iterable[Any], seconds: float) -> bool:
        pending = [future for future in futures if not future.is_done]
        if not pending:
            return True
        over, left = self.sleep(seconds), len(pending)

        def count_down(_: Any) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                complete(over, result=True)

        for future in pending:
            future.add_callback(count_down)
        return bool(await over)

    def close(self) -> None:
        """The rest of the work is left undone."""
        while self._ready:
            self._ready.popleft().close()

    def _turn(self, until: float) -> bool:
        """Resumes one task, or completes one timer. False: nothing is left up to then."""
        if self._ready:
            self._resume(self._ready.popleft())
            return True
        if not self._timers or self._timers[0][0] > until:
            return False
        when, _, over = heapq.heappop(self._timers)
        if not over.is_done:
            self._pass(when)
            over.success(False)
        return True

    def _pass(self, until: float) -> None:
        if until > self.now:
            self.now = until
            self._move(until)

    def _resume(self, task: Any) -> None:
        if task.cr_frame is None:
            # It was cancelled.
            return
        try:
            future = task.send(None)
        except StopIteration:
            return
        future.add_callback(lambda _: self._ready.append(task))
