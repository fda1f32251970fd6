"""kafka-python's event loop, run by the collector's thread, with deadlines."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import partial
from typing import Any, TypeVar, cast

from kafka.future import Future
from kafka.net.selector import NetworkSelector

T = TypeVar("T")


class EventLoop:
    """One `NetworkSelector`. Only `wake` may be called from another thread."""

    def __init__(self, **options: Any) -> None:
        self.net = NetworkSelector(**{**options, "slow_task_threshold_secs": 0})

    def run(self, work: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> T:
        """Runs the loop until `work(*arguments)` ends. Returns its result or raises its error."""
        return cast(T, self.net.run(work, *arguments))

    def spawn(self, work: Callable[..., Coroutine[Any, Any, Any]], *arguments: Any) -> Any:
        """Starts work beside the caller. Its Future holds the result or the error."""
        return self.net.call_soon_with_future(work, *arguments)

    async def within(
        self, seconds: float, work: Callable[..., Coroutine[Any, Any, T]], *arguments: Any
    ) -> T:
        """The result of `work`. Cancels it and raises TimeoutError when the time is over."""
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
        return cast(T, await future)

    async def sleep(self, seconds: float) -> None:
        await self.net.sleep(max(seconds, 0.0))

    async def wait(self, futures: Iterable[Any], seconds: float) -> bool:
        """Waits until all are done, with a result or an error. False: the time was over first."""
        pending = [future for future in futures if not future.is_done]
        if not pending:
            return True
        over = Future()
        left = len(pending)

        def count_down(_: Any) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                complete(over, result=True)

        timer = self.net.call_at(
            time.monotonic() + max(seconds, 0.0), lambda: complete(over, result=False)
        )
        for future in pending:
            future.add_both(count_down)
        try:
            return bool(await over)
        finally:
            self.net.cancel(timer)

    def in_thread(self, work: Callable[[], Any]) -> Awaitable[Any]:
        """Runs a blocking call in a thread of its own. The Future is completed on the loop."""
        future = Future()

        def body() -> None:
            try:
                finish = partial(future.success, work())
            except Exception as error:
                finish = partial(future.failure, error)
            with contextlib.suppress(RuntimeError):
                # The loop may be closed by now.
                self.net.call_soon_threadsafe(lambda: finish())  # noqa: PLW0108 - no partial there

        threading.Thread(target=body, name="tidemark-resolve", daemon=True).start()
        return cast(Awaitable[Any], future)

    def wake(self, future: Any) -> None:
        """Completes a Future from another thread."""
        self.net.call_soon_threadsafe(lambda: complete(future, result=True))

    def close(self) -> None:
        self.net.close()


def complete(future: Any, *, result: Any) -> None:
    if not future.is_done:
        future.success(result)


class Barrier:
    """Holds samplers until all expected ones have arrived, or until its deadline."""

    def __init__(self, loop: EventLoop, expected: int, seconds: float) -> None:
        self._loop = loop
        self._missing = expected
        self._deadline = time.monotonic() + seconds
        self._open = Future()

    def arrive(self) -> None:
        self._missing -= 1
        if self._missing <= 0:
            complete(self._open, result=None)

    async def wait(self) -> None:
        if not self._open.is_done:
            await self._loop.wait([self._open], self._deadline - time.monotonic())
            complete(self._open, result=None)
