"""A program as a host meets it."""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import unittest

import grpc

from talon_plugin.generated.opentalon.plugin.v1 import plugin_pb2 as pb
from talon_plugin.generated.talon.plugin.v1 import notices_pb2
from talon_plugin.testing import Host

PROGRAM = str(pathlib.Path(__file__).with_name("program.py"))


class Served(unittest.TestCase):
    def setUp(self):
        self.host = Host(PROGRAM, config={"word": "hi"})
        self.addCleanup(self.host.__exit__)

    def raw(self, path, request=b"", timeout=30):
        return self.host._channel.unary_unary(path)(request, timeout=timeout)

    def execute(self, action, timeout, call_id="call", **args):
        request = pb.ToolCallRequest(id=call_id, action=action, args=args)
        path = "/opentalon.plugin.v1.PluginService/Execute"
        rpc = self.host._channel.unary_unary(
            path, pb.ToolCallRequest.SerializeToString, pb.ToolResultResponse.FromString
        )
        return rpc.future(request, timeout=timeout)

    def test_answers_errors_and_settings(self):
        self.assertEqual(self.host.call("word").content, "hi")
        self.assertEqual(self.host.call("says", text="a", times=3).content, "aaa")
        self.assertEqual(self.host.call("says", text="").error, "say what?")
        self.assertIn("there are word, slow", self.host.call("nothing").error)
        self.assertEqual(self.host.call("half_a_character").content, "a?b")

    def test_a_defect_is_not_told(self):
        for action in ("fails", "exits"):
            self.assertEqual(self.host.call(action).error, f"{action} failed; the plugin's log says why")

    def test_an_answer_that_no_host_reads_becomes_an_error(self):
        error = self.host.call("says", text="x" * 1000, times=9000).error
        self.assertIn("8323072 may be; ask for less", error)

    def test_health_is_for_plugin(self):
        self.assertEqual(self.raw("/grpc.health.v1.Health/Check", b"\x0a\x06plugin"), b"\x08\x01")
        with self.assertRaises(grpc.RpcError) as caught:
            self.raw("/grpc.health.v1.Health/Check", b"\x0a\x05other")
        self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)

    def test_what_is_not_served_is_unimplemented(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.raw("/opentalon.plugin.v1.PluginService/RefreshCapabilities")
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED)

    def test_settings_are_refused_with_the_plugins_text(self):
        with self.assertRaises(grpc.RpcError) as caught:
            Host(PROGRAM, config={"wrod": "hi"})
        self.assertEqual(caught.exception.details(), "there is one setting: word")

    def test_a_call_in_flight_is_answered_at_the_end(self):
        future = self.execute("slow", 30, seconds="0.3")
        # Answered, so the other is under way: calls of one connection are taken in order.
        self.host.call("word")
        self.assertEqual(self.host.shutdown(), 0)
        self.assertEqual(future.result().content, "done")

    def test_a_tool_that_never_ends_does_not_hold_the_process_up(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.execute("hangs", 0.2).result()
        self.assertEqual(caught.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        self.assertEqual(self.host.shutdown(), 0)

    def test_many_slow_calls_leave_health_alone(self):
        futures = [self.execute("hangs", 60) for _ in range(40)]
        self.assertEqual(self.raw("/grpc.health.v1.Health/Check", b"\x0a\x06plugin"), b"\x08\x01")
        for future in futures:
            future.cancel()

    def test_progress_reaches_who_listens(self):
        listen = self.host._channel.unary_stream(
            "/talon.plugin.v1.Notices/Listen",
            notices_pb2.ListenRequest.SerializeToString,
            notices_pb2.Notice.FromString,
        )(notices_pb2.ListenRequest(), timeout=30)
        self.host.call("word")
        self.host.call("steps", count=2)
        told = [next(listen).progress for _ in range(2)]
        self.assertEqual([(p.call_id, p.progress, p.total) for p in told], [("call", 1, 2), ("call", 2, 2)])
        self.assertEqual(self.host.shutdown(), 0)
        self.assertEqual(list(listen), [])

    def test_output_reaches_who_listens(self):
        listen = self.host._channel.unary_stream(
            "/talon.plugin.v1.Notices/Listen",
            notices_pb2.ListenRequest.SerializeToString,
            notices_pb2.Notice.FromString,
        )(notices_pb2.ListenRequest(), timeout=30)
        self.host.call("word")
        self.host.call("prints", text="one\r\ntwo\n" + "ä" * 4096 + "\nlast")
        told = next(listen).output
        self.assertEqual(list(told.lines), ["one", "two", "ä" * 2048, "last"])
        self.assertEqual((told.call_id, told.left_out_lines), ("call", 0))
        # More than waits for a host that reads nothing meanwhile is counted, also when nothing else happens.
        self.host.call("prints", text="x\n" * 100_000)
        counted = 0
        while counted < 100_000:
            output = next(listen).output
            counted += len(output.lines) + output.left_out_lines
        self.assertEqual(counted, 100_000)
        self.assertEqual(self.host.shutdown(), 0)

    def test_an_event_is_told_until_it_is_acknowledged(self):
        first = self.host.events()
        with concurrent.futures.ThreadPoolExecutor(2) as threads:
            answers = [threads.submit(self.host.call, "tell", id="a")]
            told = next(first)
            self.assertEqual((told.id, told.topic, told.summary, told.severity), ("a", "told", "event a", "warning"))
            self.assertEqual(dict(told.fields), {"from": "ada"})
            answers.append(threads.submit(self.host.call, "tell", id="b"))
            self.assertEqual(next(first).id, "b")
            second = self.host.events()
            self.assertEqual(next(second).id, "a")
            self.assertEqual(list(first), [])
            self.host.acknowledge("a", "of nothing")
            self.assertEqual(answers[0].result().content, "1 wait")
            self.host.acknowledge(refused={"b": "bad"})
            self.assertEqual(answers[1].result().content, "refused: bad")
        self.assertEqual(self.host.shutdown(), 0)
        self.assertEqual([event.id for event in second], ["b"])


class Started(unittest.TestCase):
    def start(self, **env):
        surroundings = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path), **env}
        return subprocess.run(
            [sys.executable, PROGRAM], env=surroundings, capture_output=True, text=True, timeout=60, check=False
        )

    def test_by_hand_it_says_what_to_do(self):
        ended = self.start()
        self.assertEqual((ended.returncode, ended.stdout), (1, ""))
        self.assertIn("talon exec", ended.stderr)
        self.assertIn("Its actions: word, slow", ended.stderr)

    def test_a_path_too_long_for_a_socket_is_said(self):
        cookie = {"TALON_PLUGIN_MAGIC_COOKIE": "d3a7c1f0-talon-plugin"}
        ended = self.start(PLUGIN_UNIX_SOCKET_DIR="/tmp/" + "d" * 120, **cookie)
        self.assertEqual((ended.returncode, ended.stdout), (1, ""))
        self.assertIn("at most 107", ended.stderr)

    def test_the_log_is_hclogs(self):
        host = Host(PROGRAM, env={"TALON_LOG": "debug"})
        # Its stderr is ours, so another process is asked.
        host.__exit__()
        code = "import logging; from talon_plugin import logs; logs.to_stderr(); logging.getLogger('a').warning('b')"
        ended = subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True
        )
        self.assertEqual(json.loads(ended.stderr)["@level"], "warn")


if __name__ == "__main__":
    unittest.main()
