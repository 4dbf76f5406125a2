"""Counters kept by the host: a Talon plugin's state without an SDK, in plain Python and grpcio.

The state is above `class Counter`; the rest is what every plugin owes its host (csv-query says more about it).
"""

import os
import signal
import sys
import tempfile
import threading
from concurrent import futures

import grpc
from google.protobuf import empty_pb2
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from opentalon.plugin.v1 import plugin_pb2 as pb
from opentalon.plugin.v1 import plugin_pb2_grpc
from talon.state.v1 import state_pb2, state_pb2_grpc

# How often one increment tries. Each time it fails, somebody else has counted.
MAX_TRIES = 100
# Seconds that one operation on the state may take; the socket is on this machine.
STATE_TIMEOUT = 5


class Refusal(Exception):
    """The tool says no; the text goes to the caller."""


class Counters:
    """Counters in the host's state."""

    def __init__(self, socket):
        # Not there: this host keeps no state. The channel connects at the first use and again when it has to; the
        # bounds keep it from waiting long between attempts. On a unix socket gRPC's C library names the path as the
        # authority, which is none, and strict servers reset such a request: it is said here instead.
        options = [
            ("grpc.default_authority", "localhost"),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 2000),
        ]
        self.state = socket and state_pb2_grpc.StateStub(grpc.insecure_channel(f"unix:{socket}", options))

    def increment(self, name):
        key = f"counter/{name}"
        seen = self.ask("Get", state_pb2.GetRequest(key=key))
        old = seen.value if seen.HasField("value") else None
        for _ in range(MAX_TRIES):
            try:
                new = int(old or b"0") + 1
            except ValueError:
                raise Refusal(f"{name} does not hold a count") from None
            # `expected` left out means: only if there is no such key.
            change = state_pb2.CompareAndSetRequest(key=key, expected=old, value=str(new).encode())
            swap = self.ask("CompareAndSet", change)
            if swap.swapped:
                return new
            # Another call, or another instance of this plugin, was faster.
            old = swap.current if swap.HasField("current") else None
        raise Refusal(f"{name} is counted by too many at once: try again")

    def reset(self, name):
        self.ask("Set", state_pb2.SetRequest(key=f"counter/{name}", value=b"0"))

    def ask(self, method, request):
        if not self.state:
            raise Refusal("this host keeps no state: TALON_STATE_SOCKET is not set")
        try:
            return getattr(self.state, method)(request, timeout=STATE_TIMEOUT)
        except grpc.RpcError as error:
            if error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                raise Refusal("the counters are not available for now: try again later") from error
            # A quota that is used up (RESOURCE_EXHAUSTED) or a key that is too long (INVALID_ARGUMENT): the host's
            # text says what would help.
            raise Refusal(error.details()) from error


class Counter(plugin_pb2_grpc.PluginServiceServicer):
    def __init__(self):
        self.counters = Counters(os.environ.get("TALON_STATE_SOCKET"))

    def Init(self, request, context):
        if request.config_json not in ("", "{}"):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "this plugin takes no config")
        return empty_pb2.Empty()

    def Capabilities(self, request, context):
        name = pb.Parameter(name="name", description="Which counter", type="string", required=True)
        return pb.PluginCapabilities(
            name="counter-py",
            description="Counts, and goes on counting after a restart",
            actions=[
                pb.Action(name="increment", description="Adds one and gives the count", parameters=[name]),
                pb.Action(name="reset", description="Begins again at zero", parameters=[name]),
            ],
        )

    def Execute(self, request, context):
        result = pb.ToolResultResponse(call_id=request.id)
        try:
            name = request.args["name"]
            if request.action == "increment":
                result.content = str(self.counters.increment(name))
            elif request.action == "reset":
                self.counters.reset(name)
                result.content = "0"
            else:
                result.error = f"no action {request.action!r}"
        except Refusal as error:
            result.error = str(error)
        return result


def shutdown_handler(stop):
    """go-plugin's GRPCController, as far as a host uses it: an empty message in, an empty one out."""

    def shutdown(request, context):
        stop.set()
        return b""

    handler = grpc.unary_unary_rpc_method_handler(shutdown)
    return grpc.method_handlers_generic_handler("plugin.GRPCController", {"Shutdown": handler})


def main():
    if os.environ.get("TALON_PLUGIN_MAGIC_COOKIE") != "d3a7c1f0-talon-plugin":
        sys.exit("This is a Talon plugin; a host starts it. Try: talon serve, with its directory in the plugin directory")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    directory = os.environ.get("PLUGIN_UNIX_SOCKET_DIR") or tempfile.mkdtemp()
    address = os.path.join(directory, "counter.sock")
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=8))
    plugin_pb2_grpc.add_PluginServiceServicer_to_server(Counter(), server)
    checker = health.HealthServicer()
    checker.set("plugin", health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(checker, server)
    server.add_generic_rpc_handlers((shutdown_handler(stop),))
    server.add_insecure_port(f"unix:{address}")
    server.start()
    print(f"1|1|unix|{address}|grpc", flush=True)
    stop.wait()
    server.stop(grace=5).wait()


if __name__ == "__main__":
    main()
