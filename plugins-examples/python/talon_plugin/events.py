"""Events that a plugin tells: what happens elsewhere, such as a mail that came."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import Future

from .errors import ToolError
from .generated.talon.plugin.v1 import notices_pb2 as pb

# How many events wait for the host, and how many bytes: some hours of what hosts let a plugin tell by default.
MAX_EVENTS = 4096
MAX_BYTES = 4 << 20
# What hosts keep of each text.
MAX_SUMMARY_BYTES = 490
MAX_DETAILS_BYTES = 16 << 10
MAX_FIELD_BYTES = 512


class EventQueueFull(ToolError):
    """Too many events wait for the host. Tell this one again later."""


class EventRefused(ToolError):
    """The host never takes the event; its text is the host's reason."""


class EventSource:
    """Tells the host events, from any thread. Each is kept in memory and sent again until the host has it on its disk, so a host that
    restarts loses none. A plugin that must not lose events over its own end keeps them itself, and tells those again with the same
    id that were not acknowledged. The operator has to let the plugin tell events (`events` in its entry)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # In the order in which they were told.
        self._waiting: dict[str, tuple[int, pb.PluginEvent, Future[None]]] = {}
        self._next = 0
        self._bytes = 0
        self._listener: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None

    def tell(
        self,
        id: str,
        topic: str,
        summary: str,
        *,
        details: str = "",
        severity: str = "info",
        fields: Mapping[str, str] | None = None,
    ) -> "Future[None]":
        """Tells an event; never waits. `id` is 1 to 128 letters, digits and -_.:/, another one for each event; one that waits already
        is the same event. `topic` is 1 to 64 of a-z, 0-9 and -_. What comes back is done once the host has the event on its disk;
        its exception is EventRefused. EventQueueFull: the host does not take so many."""
        event = pb.PluginEvent(
            id=id,
            topic=topic,
            severity=severity,
            summary=_cut(summary, MAX_SUMMARY_BYTES),
            details=_cut(details, MAX_DETAILS_BYTES),
            fields={name: _cut(value, MAX_FIELD_BYTES) for name, value in (fields or {}).items()},
            time_unix_ms=int(time.time() * 1000),
        )
        with self._lock:
            if id in self._waiting:
                return self._waiting[id][2]
            size = event.ByteSize()
            if len(self._waiting) >= MAX_EVENTS or self._bytes + size > MAX_BYTES:
                raise EventQueueFull(f"{len(self._waiting)} events wait for the host: tell this one again later")
            settled: Future[None] = Future()
            # It cannot be cancelled: the event goes to the host whether or not anybody waits.
            settled.set_running_or_notify_cancel()
            self._waiting[id] = (self._next, event, settled)
            self._next += 1
            self._bytes += size
            self._wake()
        return settled

    @property
    def waiting(self) -> int:
        """How many events the host has not acknowledged."""
        return len(self._waiting)

    def _wake(self) -> None:
        if self._listener is not None:
            loop, news = self._listener
            try:
                loop.call_soon_threadsafe(news.set)
            except RuntimeError:
                # The program ends: there is no host left.
                pass

    async def _subscribe(self) -> AsyncIterator[pb.PluginEvent]:
        """What was not acknowledged, the oldest first, then what is told; ends when another one subscribes."""
        own = (asyncio.get_running_loop(), asyncio.Event())
        with self._lock:
            self._wake()
            self._listener = own
        after = -1
        while True:
            own[1].clear()
            with self._lock:
                if self._listener is not own:
                    return
                found = next((each for each in self._waiting.values() if each[0] > after), None)
            if found is None:
                await own[1].wait()
                continue
            after = found[0]
            yield found[1]

    def _stop(self) -> None:
        with self._lock:
            self._wake()
            self._listener = None

    def _acknowledge(self, request: pb.AcknowledgeEventsRequest) -> None:
        refused = [(each.id, EventRefused(each.reason)) for each in request.refused]
        settled = []
        with self._lock:
            for id, why in [(id, None) for id in request.ids] + refused:
                if id in self._waiting:
                    _, event, future = self._waiting.pop(id)
                    self._bytes -= event.ByteSize()
                    settled.append((future, why))
        # Outside of the lock: who waits may tell the next one at once.
        for future, why in settled:
            if why is None:
                future.set_result(None)
            else:
                future.set_exception(why)


def _cut(text: str, most: int) -> str:
    return text.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")
