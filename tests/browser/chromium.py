"""A small client for Chromium's DevTools protocol over a pair of pipes: no port is opened, no driver is needed."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ANSWER_SECONDS = 30.0
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-pipe",
)


class BrowserError(Exception):
    """What Chromium refused, or did not answer in time."""


class Chromium:
    """One browser process with a profile of its own; `page()` opens a tab."""

    def __init__(self, program: str, folder: Path) -> None:
        theirs_read, self._write = os.pipe()
        self._read, theirs_write = os.pipe()
        # Chromium reads commands from 3 and writes answers to 4: first out of the way of each other, then there.
        high_read, high_write = (
            fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 20) for fd in (theirs_read, theirs_write)
        )
        with (folder / "chromium.log").open("w") as log:
            self.pid = os.posix_spawn(
                program,
                [program, *FLAGS, f"--user-data-dir={folder / 'profile'}", "about:blank"],
                {
                    **os.environ,
                    "HOME": str(folder),
                    "XDG_CONFIG_HOME": str(folder),
                    "XDG_CACHE_HOME": str(folder),
                },
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, high_read, 3),
                    (os.POSIX_SPAWN_DUP2, high_write, 4),
                    (os.POSIX_SPAWN_DUP2, log.fileno(), 1),
                    (os.POSIX_SPAWN_DUP2, log.fileno(), 2),
                ],
                setsid=True,
            )
        for fd in (theirs_read, theirs_write, high_read, high_write):
            os.close(fd)
        self._number = 0
        self._buffer = b""
        # Events by session, in order; whoever waits for one takes it.
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.call("Browser.close")
        except (BrowserError, OSError):
            os.killpg(self.pid, 9)
        os.waitpid(self.pid, 0)
        os.close(self._read)
        os.close(self._write)

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """One command and its answer. Raises BrowserError."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            answer = self._next(deadline, method)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
            if "method" in answer:
                self.events.append(answer)

    def wait_for(self, event: str, session: str) -> dict[str, Any]:
        """The next such event of a tab, one that came already included."""
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            for index, one in enumerate(self.events):
                if one["method"] == event and one.get("sessionId") == session:
                    found: dict[str, Any] = self.events.pop(index)["params"]
                    return found
            answer = self._next(deadline, event)
            if "method" in answer:
                self.events.append(answer)

    def forget(self, event: str, session: str) -> None:
        self.events = [
            one for one in self.events if (one["method"], one.get("sessionId")) != (event, session)
        ]

    def _next(self, deadline: float, what: str) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            chunk = os.read(self._read, 1 << 20) if ready else b""
            if not chunk:
                raise BrowserError(f"no answer to {what}")
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    def page(
        self, width: int = 1280, height: int = 900, *, dark: bool = False, scripts: bool = True
    ) -> Tab:
        """A fresh tab of a context of its own: no storage is shared."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)[
            "targetId"
        ]
        tab = Tab(
            self, self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        )
        for domain in ("Page", "Runtime", "Log", "Network"):
            tab.call(f"{domain}.enable")
        tab.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        tab.call("Emulation.setEmulatedMedia", features=scheme)
        if not scripts:
            tab.call("Emulation.setScriptExecutionDisabled", value=True)
        return tab


class Tab:
    """One tab. Expressions are the test's own and run even where the page's scripts may not."""

    def __init__(self, browser: Chromium, session: str) -> None:
        self._browser = browser
        self._session = session

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **parameters)

    def open(self, url: str) -> None:
        # A page that was left by a link has fired this event too.
        self._browser.forget("Page.loadEventFired", self._session)
        self.call("Page.navigate", url=url)
        self._browser.wait_for("Page.loadEventFired", self._session)

    def run(self, expression: str) -> Any:
        """The value of an expression. Raises BrowserError with what it threw."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise BrowserError(f"{expression[:200]}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait_until(self, expression: str, seconds: float = 10.0) -> None:
        deadline = time.monotonic() + seconds
        while not self._is_true(expression):
            if time.monotonic() > deadline:
                raise BrowserError(f"did not come true in {seconds:g} s: {expression}")
            time.sleep(0.05)

    def _is_true(self, expression: str) -> bool:
        try:
            return bool(self.run(expression))
        except BrowserError as error:
            # A page that is being left while it is asked is not there yet.
            if "navigated" in str(error):
                return False
            raise

    def press(self, key: str) -> None:
        code = {"Tab": 9, "Enter": 13}[key]
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
                **text,
            )

    def complaints(self) -> list[str]:
        """What the console and the log told: broken policy, failed loads, exceptions."""
        mine = [event for event in self._browser.events if event.get("sessionId") == self._session]
        told = []
        for event in mine:
            if event["method"] == "Log.entryAdded":
                told.append(event["params"]["entry"]["text"])
            elif event["method"] in {"Runtime.exceptionThrown", "Runtime.consoleAPICalled"}:
                told.append(json.dumps(event["params"])[:500])
        return told

    def requested(self) -> list[str]:
        """Addresses that the tab asked for."""
        mine = [event for event in self._browser.events if event.get("sessionId") == self._session]
        return [
            event["params"]["request"]["url"]
            for event in mine
            if event["method"] == "Network.requestWillBeSent"
        ]

    def screenshot(self, path: Path) -> None:
        """The whole page, not only what is in sight."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {
            "x": 0,
            "y": 0,
            "width": size["width"],
            "height": min(size["height"], 6000),
            "scale": 1,
        }
        taken = self.call(
            "Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip
        )
        path.write_bytes(base64.b64decode(taken["data"]))
