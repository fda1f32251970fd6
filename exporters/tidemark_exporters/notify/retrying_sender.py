"""Posts one receiver's alerts: threads, retries, commits and counters, for every kind of receiver.

Each address has its own thread, so a slow address does not delay the others. Commits have one too.
The `ReceiverState` chooses the posts and judges their answers.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

import structlog

from tidemark.core.records import Alert
from tidemark.web.webhook_client import Client, NotDeliveredError
from tidemark_exporters.failures import Failures
from tidemark_exporters.notify.address import Address
from tidemark_exporters.notify.offsets import Commit, Offsets, OffsetStore, Position
from tidemark_exporters.notify.receiver_state import ReceiverState

IDLE_SECONDS: Final = 1.0
# What raised is tried again after this.
FAILED_SECONDS: Final = 5.0
# How long a post waits for the commit of the one before it. One that takes longer delays no other
# until commits succeed again.
COMMITTED_SECONDS: Final = 1.0

log = structlog.get_logger()


class SenderReport(NamedTuple):
    """The outcomes of a receiver's alerts since the last report, and its addresses."""

    outcomes: Counter[str]
    muted: int
    addresses: list[Address]


class Sender:
    """One receiver. `offer`, `tick` and `report` may be called while its threads run."""

    def __init__(
        self,
        state: ReceiverState,
        clients: Sequence[Client],
        store: OffsetStore | None,
        clock: Callable[[], float],
        failures: Failures | None = None,
    ) -> None:
        """`failures`: of what it cannot take, post or commit; without it, an error is raised."""
        self.name = state.route.name
        self._failures = failures or Failures()
        self.addresses = [Address(number, client) for number, client in enumerate(clients)]
        self._state = state
        self._store = store
        self._clock = clock
        self._changed = threading.Condition()
        self._changes = 0
        self._running = 0
        self._stopping = False
        # Posts that were answered, and how many of them the newest commit covers.
        self._answered = self._covered = 0
        self._committed: dict[int, Commit] = {}
        self._commit_failing = self._commit_slow = False

    def attach(self, store: OffsetStore, offsets: Offsets) -> None:
        """Where commits are kept from now on, and what earlier runs committed."""
        with self._changed:
            self._store = store
            self._state.attach(offsets)

    def begin_again(self, topic_id: str | None) -> None:
        """The alerts topic was deleted and created again: all of its records are new."""
        with self._changed:
            self._state.offsets.begin_again(topic_id)

    def offer_own(self, own: Iterable[Alert]) -> None:
        """Takes alerts without a record while no topic can be read: time alone moves nothing."""
        with self._changed:
            self._take_own(own)
            self._notify()

    def offer(self, records: Iterable[tuple[Alert, Position]]) -> None:
        """Takes the records of one poll together: urgent alerts of one cause still share a post."""
        with self._changed:
            for alert, position in records:
                try:
                    self._state.offer(alert, position, self._clock())
                except Exception as error:
                    self._failures.add("alert", self.name, error)
                    # It is not settled, so the next start reads it again.
                    if not self._state.offsets.settled_before(position):
                        self._state.offsets.begin(position)
            self._notify()

    def tick(
        self,
        newest: dict[str, float],
        stale: dict[str, float],
        own: Iterable[Alert] = (),
        adopted: Iterable[tuple[Alert, bool]] = (),
    ) -> None:
        """Advances to now. The arguments are those of `tick`, `offer_own` and `adopt`."""
        with self._changed:
            now, released = self._clock(), 0
            for alert, is_old in adopted:
                with self._failures.guard("alert", self.name):
                    self._state.adopt(alert, now, is_old=is_old)
            with self._failures.guard("tick", self.name):
                released = self._state.tick(newest, stale, now)
            self._take_own(own)
            self._notify()
        if released:
            log.info(
                "alerts that a maintenance window held back are delivered",
                receiver=self.name,
                alerts=released,
            )

    def _take_own(self, own: Iterable[Alert]) -> None:
        for alert in own:
            with self._failures.guard("alert", self.name):
                self._state.offer_own(alert, self._clock())

    def _notify(self) -> None:
        self._changes += 1
        self._changed.notify_all()

    def report(self) -> SenderReport:
        with self._changed:
            report = SenderReport(self._state.outcomes, len(self._state.muted), [])
            self._state.outcomes = Counter()
            for address in self.addresses:
                address.waiting, address.oldest = self._state.waiting(address.number, self._clock())
                report.addresses.append(replace(address))
                address.attempts = Counter()
            return report

    def runs(self) -> list[Callable[[], None]]:
        """What to run in threads, until `stop`."""
        self._running = len(self.addresses)
        return [*(partial(self._run, address) for address in self.addresses), self._run_commits]

    def stop(self) -> None:
        """Ends the threads after the post in hand. What is not delivered is not committed."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def _run(self, address: Address) -> None:
        try:
            while not self._stopping:
                try:
                    self.post_due(address)
                    self._wait_for_change(address)
                except Exception as error:
                    self._failures.add("post", self.name, error)
                    self._pause_failed()
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def _wait_for_change(self, address: Address) -> None:
        with self._changed:
            self._changed.wait_for(
                lambda: self._stopping or address.seen != self._changes,
                timeout=self._idle_seconds(address),
            )

    def _pause_failed(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._stopping, timeout=FAILED_SECONDS)

    def _idle_seconds(self, address: Address) -> float:
        now, next_at = self._clock(), self._state.next_at()
        due_at = max(address.not_before, now + IDLE_SECONDS if next_at is None else next_at)
        return min(IDLE_SECONDS, max(0.0, due_at - now))

    def _run_commits(self) -> None:
        while not self._ended():
            with self._changed:
                self._changed.wait_for(
                    lambda: self._answered > self._covered or self._ended(), timeout=IDLE_SECONDS
                )
            self._commit_guarded()
        self._commit_guarded()
        if self._store is not None:
            self._store.close()

    def _commit_guarded(self) -> None:
        try:
            self.commit()
        except Exception as error:
            self._failures.add("commit", self.name, error)
            self._pause_failed()

    def _ended(self) -> bool:
        return self._stopping and self._running == 0

    def commit(self) -> None:
        """Commits what was settled since the last commit, unless no address takes posts.

        The next commit covers a failed one.
        """
        with self._changed:
            commits, store, answered = self._state.offsets.commits(), self._store, self._answered
        if store is None or all(address.failures for address in self.addresses):
            saved = False
        else:
            saved = commits == self._committed or self._save(store, commits)
        with self._changed:
            self._covered, self._commit_slow = answered, self._commit_slow and not saved
            self._changed.notify_all()

    def _save(self, store: OffsetStore, commits: dict[int, Commit]) -> bool:
        saved = store.save(commits)
        if saved:
            self._committed, self._commit_failing = commits, False
        elif not self._commit_failing:
            self._commit_failing = True
            log.warning(
                "cannot commit what was delivered; a restart now would post it again",
                receiver=self.name,
            )
        return saved

    def post_due(self, address: Address) -> None:
        """Posts to an address all that is due now, or until a post fails."""
        while not self._stopping and self._post(address):
            self._wait_for_commit()

    def _wait_for_commit(self) -> None:
        """So that after a kill at most one post is made again, the last."""
        with self._changed:
            answered = self._answered
            if self._store is None or self._running == 0 or self._commit_slow:
                return
            self._commit_slow = not self._changed.wait_for(
                lambda: self._covered >= answered or self._stopping, timeout=COMMITTED_SECONDS
            )

    def _post(self, address: Address) -> bool:
        """One post; False where none is due."""
        request, error = None, None
        with self._changed:
            now, address.seen = self._clock(), self._changes
            if now >= address.not_before:
                try:
                    request = self._state.request(address.number, now)
                except Exception as reason:
                    # The alerts at fault are found and given up as those that a receiver refuses.
                    self._failures.add("post", self.name, reason)
                    error = NotDeliveredError(f"cannot be written: {reason!r}", refused=True)
        if request is None and error is None:
            return False
        if request is not None:
            error = self._try(address.client, *request)
        with self._changed:
            before, now = address.failures, self._clock()
            address.note(error, now)
            refused = self._judge(address, error, now)
            self._answered += 1
            self._changed.notify_all()
        address.log(before, error, refused)
        return True

    def _try(self, client: Client, body: bytes, message_id: str | None) -> NotDeliveredError | None:
        try:
            client.post(body, message_id)
        except NotDeliveredError as error:
            return error
        except Exception as error:
            # The text of an unknown error may hold the address, and that a secret.
            failed = NotDeliveredError(f"unexpected {type(error).__name__}")
            self._failures.add("post", self.name, failed)
            return failed
        return None

    def _judge(self, address: Address, error: NotDeliveredError | None, now: float) -> list[Alert]:
        """Tells the state how a post ended. Returns refused alerts."""
        if error is None:
            self._state.delivered(address.number, now)
        elif error.refused:
            return self._state.refused(address.number, now)
        else:
            self._state.failed(address.number)
        return []
