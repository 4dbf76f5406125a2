"""What a program owes its host: the cookie, a socket, one line on stdout, the services, an orderly end."""

import asyncio
import concurrent.futures
import inspect
import json
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import grpc
from google.protobuf import empty_pb2
from grpc import aio

from . import logs
from .context import Context
from .errors import ToolError
from .generated.opentalon.plugin.v1 import plugin_pb2 as pb
from .generated.talon.plugin.v1 import notices_pb2
from .model import HostModels
from .notices import NoticeQueue
from .state import HostKeys, State
from .tools import ToolSet, answer, refusal

log = logging.getLogger("talon_plugin")

COOKIE = ("TALON_PLUGIN_MAGIC_COOKIE", "d3a7c1f0-talon-plugin")
# Tools that are no coroutines run in threads. The host lets 16 calls in at once unless configured; more wait their turn.
THREADS = 32
# The largest request that is read. The host itself lets 1 MiB of arguments through.
MAX_REQUEST_BYTES = 32 << 20
# What the host reads at most where it does not say (OPENTALON_GRPC_MAX_MSG_BYTES), and what of it is left for the rest of
# an answer. A larger answer becomes an error, which a host would otherwise make of it less clearly.
DEFAULT_ANSWER_BYTES = 8 << 20
ANSWER_MARGIN_BYTES = 64 << 10
# How long calls in flight may take at the end. The host's own grace period is 10 s unless configured.
GRACE_SECONDS = 8
# The longest path of a unix socket, by the kernel.
MAX_SOCKET_PATH = 107
# How much of a line of output is sent, which is what hosts keep, and the lines of one notice, which has 16 KiB at most.
MAX_LINE_BYTES = 4096
MAX_OUTPUT_BYTES = 8 << 10
MAX_OUTPUT_LINES = 256


def serve(plugin: ToolSet) -> None:
    """Serves until the host is done, and ends the process."""
    if os.environ.get(COOKIE[0]) != COOKIE[1]:
        actions = ", ".join(plugin.tools) or "none"
        sys.exit(
            "this is a Talon plugin, not a program to run by hand.\n"
            f"Call one of its actions with:  talon exec {_how()} ACTION [key=value …]\n"
            f"Its actions: {actions}"
        )
    logs.to_stderr()
    asyncio.run(_Server(plugin).run())
    sys.stdout.flush()
    # A tool that still runs after its call ended must not block the exit.
    os._exit(0)


def _how() -> str:
    """What `talon exec` takes: the directory, where its manifest says how this program is started."""
    directory = os.path.dirname(os.path.abspath(sys.argv[0]))
    return directory if os.path.exists(os.path.join(directory, "plugin.yaml")) else sys.argv[0]


class _Server:
    def __init__(self, plugin: ToolSet):
        self.plugin = plugin
        self.stop = asyncio.Event()
        self.threads = concurrent.futures.ThreadPoolExecutor(THREADS, thread_name_prefix="tool")
        socket = os.environ.get("TALON_STATE_SOCKET")
        self.state = State(HostKeys(socket)) if socket else None
        socket = os.environ.get("TALON_MODEL_SOCKET")
        self.models = HostModels(socket) if socket else None
        largest = int(os.environ.get("OPENTALON_GRPC_MAX_MSG_BYTES") or DEFAULT_ANSWER_BYTES)
        self.max_answer_bytes = largest - ANSWER_MARGIN_BYTES
        self.listeners: set[NoticeQueue] = set()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop.set)
        options = [("grpc.max_receive_message_length", MAX_REQUEST_BYTES), ("grpc.max_send_message_length", -1)]
        server = aio.server(options=options)
        server.add_generic_rpc_handlers(self.handlers())
        address = _socket()
        server.add_insecure_port(f"unix:{address}")
        await server.start()
        # One write: a reader must never see half a line, nor what a tool prints in between.
        sys.stdout.write(f"1|1|unix|{address}|grpc\n")
        sys.stdout.flush()
        await self.stop.wait()
        for queue in self.listeners:
            queue.close()
        if self.plugin.event_source is not None:
            self.plugin.event_source._stop()
        await server.stop(GRACE_SECONDS)

    def handlers(self) -> tuple:
        def unary(method: Any, request: Any, response: Any) -> Any:
            return grpc.unary_unary_rpc_method_handler(method, request.FromString, response.SerializeToString)

        plugin_service = {
            "Init": unary(self.init, pb.PluginInitRequest, empty_pb2.Empty),
            "Capabilities": unary(self.capabilities, empty_pb2.Empty, pb.PluginCapabilities),
            "Execute": unary(self.execute, pb.ToolCallRequest, pb.ToolResultResponse),
        }
        listen = grpc.unary_stream_rpc_method_handler(
            self.listen, notices_pb2.ListenRequest.FromString, notices_pb2.Notice.SerializeToString
        )
        events = {
            "Subscribe": grpc.unary_stream_rpc_method_handler(
                self.subscribe, notices_pb2.SubscribeEventsRequest.FromString, notices_pb2.PluginEvent.SerializeToString
            ),
            "Acknowledge": unary(
                self.acknowledge, notices_pb2.AcknowledgeEventsRequest, notices_pb2.AcknowledgeEventsResponse
            ),
        }
        # Two services whose messages are so small that they are written here by hand.
        check = grpc.unary_unary_rpc_method_handler(self.check)
        shutdown = grpc.unary_unary_rpc_method_handler(self.shutdown)
        return tuple(
            grpc.method_handlers_generic_handler(name, methods)
            for name, methods in (
                ("opentalon.plugin.v1.PluginService", plugin_service),
                ("talon.plugin.v1.Notices", {"Listen": listen}),
                *([("talon.plugin.v1.EventSource", events)] if self.plugin.event_source else []),
                ("grpc.health.v1.Health", {"Check": check}),
                ("plugin.GRPCController", {"Shutdown": shutdown}),
            )
        )

    async def init(self, request: pb.PluginInitRequest, context: aio.ServicerContext) -> empty_pb2.Empty:
        try:
            config = json.loads(request.config_json or "{}")
            if not isinstance(config, dict):
                raise ValueError("the config is not a JSON object")
            await asyncio.get_running_loop().run_in_executor(self.threads, self.plugin.configure, config)
        except (ValueError, ToolError) as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        return empty_pb2.Empty()

    async def capabilities(self, _: empty_pb2.Empty, __: aio.ServicerContext) -> pb.PluginCapabilities:
        return self.plugin.capabilities()

    async def check(self, request: bytes, context: aio.ServicerContext) -> bytes:
        # A HealthCheckRequest is its service's name as field 1: "plugin", or none for the whole server.
        if request not in (b"", b"\x0a\x06plugin"):
            await context.abort(grpc.StatusCode.NOT_FOUND, "there is one service: plugin")
        # status = SERVING
        return b"\x08\x01"

    async def shutdown(self, _: bytes, __: aio.ServicerContext) -> bytes:
        self.stop.set()
        return b""

    async def listen(self, _: Any, __: aio.ServicerContext) -> Any:
        queue = NoticeQueue()
        self.listeners.add(queue)
        try:
            while (notice := await queue.get()) is not None:
                yield notice
        finally:
            self.listeners.discard(queue)

    async def subscribe(self, _: Any, __: aio.ServicerContext) -> Any:
        async for event in self.plugin.event_source._subscribe():
            yield event

    async def acknowledge(
        self, request: notices_pb2.AcknowledgeEventsRequest, _: aio.ServicerContext
    ) -> notices_pb2.AcknowledgeEventsResponse:
        self.plugin.event_source._acknowledge(request)
        return notices_pb2.AcknowledgeEventsResponse()

    def notify(self, notice: notices_pb2.Notice) -> None:
        for queue in self.listeners:
            queue.put(notice)

    def notify_output(self, call_id: str, lines: list[str]) -> None:
        for queue in self.listeners:
            queue.put_output(call_id, lines)

    async def execute(self, request: pb.ToolCallRequest, context: aio.ServicerContext) -> pb.ToolResultResponse:
        loop = asyncio.get_running_loop()

        def progress(done: float, total: float | None, message: str) -> None:
            news = notices_pb2.Progress(call_id=request.id, progress=done, total=total, message=message)
            try:
                loop.call_soon_threadsafe(self.notify, notices_pb2.Notice(progress=news))
            except RuntimeError:
                # A tool that still runs while the process ends: there is no caller left.
                pass

        def output(text: str) -> None:
            for lines in _batches(text):
                try:
                    loop.call_soon_threadsafe(self.notify_output, request.id, lines)
                except RuntimeError:
                    # As above.
                    return

        call = Context(
            request.id,
            config=self.plugin.config,
            seconds=context.time_remaining(),
            state=self.state,
            models=self.models,
            credentials={name: (each.header, each.value) for name, each in request.credential_headers.items()},
            on_progress=progress,
            on_output=output,
        )
        try:
            tool = self.plugin.find(request.action)
            if inspect.iscoroutinefunction(tool.function):
                result = await tool.call(call, request.args, request.arguments_json)
            else:
                result = await loop.run_in_executor(
                    self.threads, tool.call, call, request.args, request.arguments_json
                )
            made = answer(request.id, result)
        except asyncio.CancelledError:
            # The stream was reset or the deadline is past; a tool in a thread learns it by its context.
            raise
        except (Exception, SystemExit) as error:
            # sys.exit ends the call, not the plugin.
            made = refusal(request.id, error, request.action)
        finally:
            call._cancel()
        if made.ByteSize() > self.max_answer_bytes:
            error = ToolError(f"the answer has {made.ByteSize()} bytes, {self.max_answer_bytes} may be; ask for less")
            made = refusal(request.id, error, request.action)
        return made


def _batches(text: str) -> Iterator[list[str]]:
    """The lines of a text, in lists that fit into one notice each."""
    batch, size = [], 0
    for line in text.removesuffix("\n").split("\n"):
        line = line.removesuffix("\r").encode("utf-8", "replace")[:MAX_LINE_BYTES].decode("utf-8", "ignore")
        if batch and size + len(line.encode()) > MAX_OUTPUT_BYTES or len(batch) == MAX_OUTPUT_LINES:
            yield batch
            batch, size = [], 0
        batch.append(line)
        size += len(line.encode())
    yield batch


def _socket() -> str:
    """A path in the first directory that the host names."""
    directory = os.environ.get("PLUGIN_UNIX_SOCKET_DIR") or tempfile.mkdtemp(prefix="talon-")
    address = os.path.join(directory, f"plugin-{os.getpid()}.sock")
    if len(os.fsencode(address)) > MAX_SOCKET_PATH:
        sys.exit(f"{address} is too long for a unix socket, which may have at most {MAX_SOCKET_PATH} bytes")
    return address
