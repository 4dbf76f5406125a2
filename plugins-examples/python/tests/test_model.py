"""Models that are asked through a call."""

import os
import tempfile
import unittest
from concurrent import futures
from typing import Any

import grpc

from talon_plugin import Context, ModelError, Plugin
from talon_plugin.generated.talon.model.v1 import model_pb2 as pb
from talon_plugin.model import HostModels, Model
from talon_plugin.testing import CannedModels, call

plugin = Plugin("brief", "Summarizes.")


@plugin.tool(read_only=True)
def summarize(text: str, cx: Context) -> str:
    """Summarizes a text."""
    return cx.model.complete(text, system="One sentence.").text


def refuse(request: pb.CompleteRequest, context: Any) -> None:
    detail = pb.Refusal(reason="over_budget").SerializeToString()
    name = b"type.googleapis.com/talon.model.v1.Refusal"
    packed = b"\x0a" + bytes([len(name)]) + name + b"\x12" + bytes([len(detail)]) + detail
    status = b"\x08\x08\x1a" + bytes([len(packed)]) + packed
    context.set_trailing_metadata((("grpc-status-details-bin", status),))
    context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "no money")


class ModelTests(unittest.TestCase):
    def test_a_tool_asks_the_granted_model(self) -> None:
        models = CannedModels("It rained.")
        self.assertEqual(call(plugin, "summarize", {"text": "..."}, models=models).content, "It rained.")
        self.assertEqual(models.requests[0].system, "One sentence.")
        self.assertEqual(models.requests[0].call_id, "call")

    def test_without_a_grant_the_tool_says_so(self) -> None:
        with self.assertRaises(ModelError) as refused:
            call(plugin, "summarize", {"text": "..."})
        self.assertEqual(refused.exception.reason, "not_granted")
        with self.assertRaises(ModelError) as refused:
            Model(CannedModels("x", ("a", "b"))).complete("y", model="c")
        self.assertEqual(refused.exception.reason, "unknown_model")
        self.assertIn("a, b", str(refused.exception))

    def test_the_reason_of_the_host_arrives(self) -> None:
        server = grpc.server(futures.ThreadPoolExecutor(2))
        complete = grpc.unary_unary_rpc_method_handler(refuse, pb.CompleteRequest.FromString)
        handlers = grpc.method_handlers_generic_handler("talon.model.v1.Model", {"Complete": complete})
        server.add_generic_rpc_handlers((handlers,))
        with tempfile.TemporaryDirectory() as directory:
            socket = os.path.join(directory, "m")
            server.add_insecure_port(f"unix:{socket}")
            server.start()
            with self.assertRaises(ModelError) as refused:
                Model(HostModels(socket)).complete("y")
            server.stop(None)
        self.assertEqual((refused.exception.reason, str(refused.exception)), ("over_budget", "no money"))
