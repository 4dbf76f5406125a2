"""The queue of one listener."""

import asyncio
import unittest

from talon_plugin.generated.talon.plugin.v1 import notices_pb2
from talon_plugin.notices import MAX_NOTICES, NoticeQueue


class Queue(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.queue = NoticeQueue()

    async def next(self):
        return (await asyncio.wait_for(self.queue.get(), 30)).output

    async def test_a_count_waits_for_no_further_line(self):
        for _ in range(MAX_NOTICES + 3):
            self.queue.put_output("a", ["x", "x"])
        self.queue.put_output("b", ["x"])
        for _ in range(MAX_NOTICES):
            output = await self.next()
            self.assertEqual((output.call_id, len(output.lines), output.left_out_lines), ("a", 2, 0))
        for call_id, left_out in (("a", 6), ("b", 1)):
            output = await self.next()
            self.assertEqual((output.call_id, list(output.lines), output.left_out_lines), (call_id, [], left_out))
        self.queue.close()
        self.assertIsNone(await self.queue.get())

    async def test_a_line_after_a_gap_has_its_count(self):
        for _ in range(MAX_NOTICES + 1):
            self.queue.put_output("a", ["x"])
        await self.next()
        self.queue.put_output("a", ["after"])
        outputs = [await self.next() for _ in range(MAX_NOTICES)]
        self.assertEqual((list(outputs[-1].lines), outputs[-1].left_out_lines), (["after"], 1))
        self.assertTrue(all(output.left_out_lines == 0 for output in outputs[:-1]))

    async def test_what_is_counted_is_bounded(self):
        for number in range(3 * MAX_NOTICES):
            self.queue.put_output(str(number), ["x"])
            self.queue.put(notices_pb2.Notice())
        self.queue.close()
        counted = 0
        while (notice := await self.queue.get()) is not None:
            counted += notice.output.left_out_lines
        self.assertEqual(counted, MAX_NOTICES)

    async def test_who_waits_is_woken(self):
        waiting = asyncio.create_task(self.next())
        await asyncio.sleep(0)
        self.queue.put_output("a", ["x"])
        self.assertEqual(list((await waiting).lines), ["x"])
        waiting = asyncio.create_task(self.queue.get())
        await asyncio.sleep(0)
        self.queue.close()
        self.assertIsNone(await asyncio.wait_for(waiting, 30))
