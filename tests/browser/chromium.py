"""A client for Chromium's DevTools protocol over two pipes: it needs no port and no driver."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import time
from pathlib import Path
from typing import Any

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
    """Chromium returned an error, or did not answer in time."""


class Chromium:
    """One browser process with its own profile. `page()` opens a tab."""

    def __init__(self, program: str, folder: Path) -> None:
        theirs_read, self._write = os.pipe()
        self._read, theirs_write = os.pipe()
        # Chromium reads commands from 3 and writes answers to 4. Both are moved to free numbers
        # first, so that neither overwrites the other.
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
        # Events of all tabs in order, until `wait_for` takes them.
        self.events: list[dict[str, Any]] = []

    def close(self) -> None:
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
        """The next such event of a tab, which may have arrived already."""
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            for index, one in enumerate(self.events):
                if one["method"] == event and one.get("sessionId") == session:
                    found: dict[str, Any] = self.events.pop(index)["params"]
                    return found
            answer = self._next(deadline, event)
            if "method" in answer:
                self.events.append(answer)

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
        """A new tab in its own context: it shares no storage."""
        context = self.call("Target.createBrowserContext")
        target = self.call("Target.createTarget", url="about:blank", **context)
        tab = Tab(self, self.call("Target.attachToTarget", flatten=True, **target)["sessionId"])
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
    """One tab. `run` also works where the page's own scripts are disabled."""

    def __init__(self, browser: Chromium, session: str) -> None:
        self._browser = browser
        self._session = session

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **parameters)

    def open(self, url: str) -> None:
        # Following a link fired this event too.
        for event in self._events("Page.loadEventFired"):
            self._browser.events.remove(event)
        self.call("Page.navigate", url=url)
        self._browser.wait_for("Page.loadEventFired", self._session)

    def run(self, expression: str) -> Any:
        """The value of an expression. Raises BrowserError when it throws."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise BrowserError(f"{expression[:200]}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait_until(self, expression: str, seconds: float = 10.0) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                if self.run(expression):
                    return
            except BrowserError as error:
                # The next page is still loading.
                if "navigated" not in str(error):
                    raise
            time.sleep(0.05)
        raise BrowserError(f"not true after {seconds:g} s: {expression}")

    def press(self, key: str) -> None:
        code = {"Tab": 9, "Enter": 13, "ArrowLeft": 37, "ArrowRight": 39, "End": 35}[key]
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
        """The log and the console: policy violations, failed loads, exceptions."""
        logged = [event["params"]["entry"]["text"] for event in self._events("Log.entryAdded")]
        thrown = self._events("Runtime.exceptionThrown", "Runtime.consoleAPICalled")
        return logged + [json.dumps(event["params"])[:500] for event in thrown]

    def requested(self) -> list[str]:
        """The addresses that the tab requested."""
        requests = self._events("Network.requestWillBeSent")
        return [event["params"]["request"]["url"] for event in requests]

    def _events(self, *methods: str) -> list[dict[str, Any]]:
        return [
            event
            for event in self._browser.events
            if event.get("sessionId") == self._session and event["method"] in methods
        ]

    def screenshot(self, path: Path, max_height: int = 6000) -> None:
        """The whole page, also below the window."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {**size, "height": min(size["height"], max_height), "scale": 1}
        taken = self.call(
            "Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip
        )
        path.write_bytes(base64.b64decode(taken["data"]))
