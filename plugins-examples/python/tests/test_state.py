"""The state's client against a server with its own messages, and what the tests' state has in common with it."""

import pathlib
import tempfile
import unittest
from concurrent import futures

import grpc

from talon_plugin import Contended, Invalid, QuotaExceeded, StateError, Unavailable
from talon_plugin.generated.talon.state.v1 import state_pb2 as pb
from talon_plugin.state import HostKeys, State
from talon_plugin.testing import MemoryKeys, memory_state


def _length(number: int, value: bytes) -> bytes:
    return bytes([number << 3 | 2, len(value)]) + value


# google.rpc.Status: code 8, a message, and the quota as an Any among the details.
_QUOTA = pb.QuotaExceeded(resource="bytes", used=90, limit=100, wanted=120).SerializeToString()
_ANY = _length(1, b"type.googleapis.com/talon.state.v1.QuotaExceeded") + _length(2, _QUOTA)
_STATUS = b"\x08\x08" + _length(2, b"full") + _length(3, _ANY)


class Server:
    """Serves `MemoryKeys`, two keys a page, and fails as the key says."""

    def __init__(self, socket: str):
        self.kept = MemoryKeys()
        self.server = grpc.server(futures.ThreadPoolExecutor(4))
        requests = {
            "Get": (self.get, pb.GetRequest),
            "Set": (self.set, pb.SetRequest),
            "Delete": (self.delete, pb.DeleteRequest),
            "Keys": (self.keys, pb.KeysRequest),
            "CompareAndSet": (self.swap, pb.CompareAndSetRequest),
        }
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(method, kind.FromString, lambda answer: answer.SerializeToString())
            for name, (method, kind) in requests.items()
        }
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("talon.state.v1.State", handlers),))
        self.server.add_insecure_port(f"unix:{socket}")
        self.server.start()

    def get(self, request, context):
        if request.key.startswith("code/"):
            context.abort(grpc.StatusCode[request.key[5:]], "told")
        return pb.GetResponse(value=self.kept.get(request.key))

    def set(self, request, context):
        if request.key == "full":
            context.set_trailing_metadata((("grpc-status-details-bin", _STATUS),))
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "full")
        self.kept.set(request.key, request.value)
        return pb.SetResponse()

    def delete(self, request, context):
        return pb.DeleteResponse(existed=self.kept.delete(request.key))

    def keys(self, request, context):
        found = [key for key in self.kept.keys(request.prefix) if key > request.page_token]
        return pb.KeysResponse(keys=found[:2], next_page_token=found[1] if len(found) > 2 else "")

    def swap(self, request, context):
        expected = request.expected if request.HasField("expected") else None
        value = request.value if request.HasField("value") else None
        swapped, current = self.kept.compare_and_set(request.key, expected, value)
        return pb.CompareAndSetResponse(swapped=swapped, current=current)


class OverASocket(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(dir="/tmp")
        self.addCleanup(directory.cleanup)
        socket = str(pathlib.Path(directory.name) / "k")
        server = Server(socket)
        self.addCleanup(lambda: server.server.stop(None).wait())
        self.state = State(HostKeys(socket))

    def test_it_keeps(self):
        keeps(self, self.state)

    def test_failures_have_types(self):
        with self.assertRaises(QuotaExceeded) as caught:
            self.state.set("full", b"x")
        full = caught.exception
        self.assertEqual((full.resource, full.used, full.limit, full.wanted), ("bytes", 90, 100, 120))
        for code, kind in [
            ("UNAVAILABLE", Unavailable),
            ("DEADLINE_EXCEEDED", Unavailable),
            ("RESOURCE_EXHAUSTED", Unavailable),
            ("INVALID_ARGUMENT", Invalid),
            ("INTERNAL", StateError),
        ]:
            with self.assertRaises(kind):
                self.state.get(f"code/{code}")

    def test_a_host_that_is_gone_is_unavailable(self):
        with self.assertRaises(Unavailable):
            State(HostKeys("/nowhere/k")).get("a")


class InMemory(unittest.TestCase):
    def test_it_keeps(self):
        keeps(self, memory_state())

    def test_limits_are_the_hosts(self):
        state = State(MemoryKeys(max_keys=1))
        state.set("a", b"")
        with self.assertRaises(QuotaExceeded):
            state.set("b", b"")
        for bad in ("", "k" * 513):
            with self.assertRaises(Invalid):
                state.get(bad)
        with self.assertRaises(Invalid):
            state.set("a", bytes((1 << 20) + 1))


def keeps(test: unittest.TestCase, state: State) -> None:
    test.assertIsNone(state.get("a"))
    state.set("a", b"\x00\xff")
    test.assertEqual(state.get("a"), b"\x00\xff")
    test.assertEqual(state.compare_and_set("a", None, b"new"), (False, b"\x00\xff"))
    test.assertEqual(state.compare_and_set("a", b"\x00\xff", b""), (True, None))
    test.assertEqual(state.get("a"), b"")
    test.assertEqual(state.compare_and_set("a", b"", None), (True, None))
    test.assertFalse(state.delete("a"))
    for name in "edcba":
        state.set(f"p/{name}", b"")
    test.assertEqual(state.keys("p/"), [f"p/{name}" for name in "abcde"])
    test.assertTrue(state.delete("p/a"))
    test.assertEqual(state.get_json("n", {"n": 0}), {"n": 0})
    for _ in range(2):
        state.update_json("n", lambda value: {"n": value["n"] + 1}, {"n": 0})
    test.assertEqual(state.get_json("n"), {"n": 2})
    state.set("n", b"{")
    with test.assertRaises(StateError):
        state.get_json("n")

    def never(old):
        state.set("busy", (old or b"") + b"x")
        return b"mine"

    with test.assertRaises(Contended):
        state.update("busy", never)


if __name__ == "__main__":
    unittest.main()
