"""What waits for a host that listens: notices, and how many lines of output were left out."""

import asyncio
import collections

from .generated.talon.plugin.v1 import notices_pb2

# Notices that wait to be read by the host; what comes while they are full is dropped. Lines of output that are dropped are
# counted, of as many calls.
MAX_NOTICES = 64


class NoticeQueue:
    """Of one listener. The event loop alone uses it."""

    def __init__(self) -> None:
        self._notices: collections.deque[notices_pb2.Notice] = collections.deque()
        # Lines by their call that were left out since its last notice.
        self._left_out: dict[str, int] = {}
        self._closed = False
        self._changed = asyncio.Event()

    def put(self, notice: notices_pb2.Notice) -> None:
        """Drops it while the queue is full."""
        if len(self._notices) < MAX_NOTICES:
            self._notices.append(notice)
            self._changed.set()

    def put_output(self, call_id: str, lines: list[str]) -> None:
        """Counts the lines while the queue is full. The next notice of the call has the count."""
        if len(self._notices) < MAX_NOTICES:
            self.put(_output(call_id, lines, self._left_out.pop(call_id, 0)))
        elif call_id in self._left_out or len(self._left_out) < MAX_NOTICES:
            self._left_out[call_id] = self._left_out.get(call_id, 0) + len(lines)

    def close(self) -> None:
        """What waits is still given out."""
        self._closed = True
        self._changed.set()

    async def get(self) -> notices_pb2.Notice | None:
        """Waits for the next notice; None at the end."""
        while True:
            if self._notices:
                return self._notices.popleft()
            if self._left_out:
                # The call may put out nothing more, or have ended: its count waits for no further line.
                call_id = next(iter(self._left_out))
                return _output(call_id, [], self._left_out.pop(call_id))
            if self._closed:
                return None
            self._changed.clear()
            await self._changed.wait()


def _output(call_id: str, lines: list[str], left_out: int) -> notices_pb2.Notice:
    news = notices_pb2.CallOutput(call_id=call_id, lines=lines, left_out_lines=left_out)
    return notices_pb2.Notice(output=news)
