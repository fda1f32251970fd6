"""kafka-python's event loop, driven by the collector's own thread, and waiting with a deadline on it."""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

from kafka.future import Future
from kafka.net.selector import NetworkSelector

T = TypeVar("T")


class Loop:
    """One `NetworkSelector`. Everything but `wake` is called from the thread that runs it."""

    def __init__(self, **options: Any) -> None:
        self.net = NetworkSelector(**{**options, "slow_task_threshold_secs": 0})

    def run(self, work: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> T:
        """Drives the loop until `work(*arguments)` ends; gives its result or raises its error."""
        result: T = self.net.run(work, *arguments)
        return result

    def spawn(self, work: Callable[..., Coroutine[Any, Any, Any]], *arguments: Any) -> Any:
        """Starts work beside the caller; its Future holds the result or the error."""
        return self.net.call_soon_with_future(work, *arguments)

    async def within(
        self, seconds: float, work: Callable[..., Coroutine[Any, Any, T]], *arguments: Any
    ) -> T:
        """The result of work, which is cancelled when the time is over: TimeoutError. Its own errors pass through."""
        future = Future()

        async def body() -> None:
            try:
                future.success(await work(*arguments))
            except Exception as error:
                future.failure(error)

        task = self.net.call_soon(body)
        if not await self.wait([future], seconds):
            self.net.cancel(task)
            raise TimeoutError("timed out")
        result: T = await future
        return result

    async def sleep(self, seconds: float) -> None:
        await self.net.sleep(max(seconds, 0.0))

    async def wait(self, futures: Iterable[Any], seconds: float) -> bool:
        """Waits until all are done, however they end, or the time is over. Tells whether all are done."""
        pending = [future for future in futures if not future.is_done]
        if not pending:
            return True
        over = Future()
        left = len(pending)

        def one_done(_: Any) -> None:
            nonlocal left
            left -= 1
            if left == 0 and not over.is_done:
                over.success(True)

        def time_over() -> None:
            if not over.is_done:
                over.success(False)

        timer = self.net.call_at(time.monotonic() + max(seconds, 0.0), time_over)
        for future in pending:
            future.add_both(one_done)
        try:
            return bool(await over)
        finally:
            self.net.cancel(timer)

    def in_thread(self, work: Callable[[], Any]) -> Awaitable[Any]:
        """Runs a blocking call (a name look-up) in a thread of its own; its Future is completed on the loop."""
        future = Future()

        def complete(result: Any, failure: BaseException | None) -> None:
            def finish() -> None:
                if failure is None:
                    future.success(result)
                else:
                    future.failure(failure)

            try:
                self.net.call_soon_threadsafe(finish)
            except RuntimeError:
                # The loop was closed meanwhile; nobody waits any more.
                return

        def body() -> None:
            try:
                result = work()
            except Exception as error:
                complete(None, error)
            else:
                complete(result, None)

        threading.Thread(target=body, name="tidemark-resolve", daemon=True).start()
        found: Awaitable[Any] = future
        return found

    def wake(self, future: Any) -> None:
        """Completes a Future from another thread."""

        def finish() -> None:
            if not future.is_done:
                future.success(True)

        self.net.call_soon_threadsafe(finish)

    def close(self) -> None:
        self.net.close()


class Gate:
    """Brokers meet here: it opens when all that are expected arrived, or at its deadline, so that none holds up the rest."""

    def __init__(self, loop: Loop, expected: int, seconds: float) -> None:
        self._loop = loop
        self._left = expected
        self._deadline = time.monotonic() + seconds
        self._open = Future()

    def arrive(self) -> None:
        self._left -= 1
        if self._left <= 0 and not self._open.is_done:
            self._open.success(None)

    async def passed(self) -> None:
        if not self._open.is_done:
            await self._loop.wait([self._open], self._deadline - time.monotonic())
            if not self._open.is_done:
                self._open.success(None)
