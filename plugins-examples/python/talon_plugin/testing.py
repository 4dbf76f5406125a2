"""Tests without a supervisor: tools called as a host calls them, and the program itself over its socket."""

import json
import os
import subprocess
import sys
import tempfile
import threading
from typing import Any

import grpc
from google.protobuf import empty_pb2

from .context import Context
from .errors import Invalid, ModelError, QuotaExceeded, ToolError
from .generated.opentalon.plugin.v1 import plugin_pb2 as pb
from .generated.talon.model.v1 import model_pb2 as model_pb
from .generated.talon.plugin.v1 import notices_pb2
from .plugin import Plugin
from .serve import COOKIE
from .state import State
from .tools import answer

# A bound on hanging, not an expectation of speed.
PATIENCE_SECONDS = 60


def _texts(args: dict[str, Any]) -> dict[str, str]:
    """Arguments as texts, as they travel beside their JSON: texts as they are, everything else as JSON, None left out."""
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in args.items()
        if value is not None
    }


def call(plugin: Plugin, action: str, args: dict[str, Any] | None = None, **context: Any) -> pb.ToolResultResponse:
    """Calls a tool in this process, its arguments read as on the wire, with their types. A ToolError is raised as it is. Further arguments
    are the Context's: config, seconds, state, models, injected."""
    cx = Context(config=context.pop("config", plugin.config), **context)
    return answer(cx.call_id, plugin.find(action).call(cx, _texts(args or {}), json.dumps(args or {})))


class CannedModels:
    """Models that give canned answers, under these aliases: `call(plugin, …, models=CannedModels("It rained."))`. `requests` holds
    what was asked."""

    def __init__(self, answer: str, aliases: tuple[str, ...] = ("default",)):
        self.answer = answer
        self.aliases = aliases
        self.requests: list[model_pb.CompleteRequest] = []

    def granted(self) -> list[str]:
        return list(self.aliases)

    def complete(self, request: model_pb.CompleteRequest) -> model_pb.CompleteResponse:
        alias = request.model or self.aliases[0]
        if alias not in self.aliases:
            granted = ", ".join(self.aliases)
            raise ModelError("unknown_model", f"{alias} is not granted to this plugin; granted: {granted}")
        self.requests.append(request)
        return model_pb.CompleteResponse(text=self.answer, model=f"canned/{alias}", finish="stop")


class MemoryKeys:
    """Key-values in memory with the host's limits: `State(MemoryKeys())`."""

    def __init__(self, max_keys: int = 100_000):
        self.max_keys = max_keys
        self._kept: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def get(self, key: str) -> bytes | None:
        return self._kept.get(_key(key))

    def set(self, key: str, value: bytes) -> None:
        with self._lock:
            self._put(key, value)

    def _put(self, key: str, value: bytes) -> None:
        if len(value) > 1 << 20:
            raise Invalid("a value has at most 1 MiB")
        if _key(key) not in self._kept and len(self._kept) >= self.max_keys:
            raise QuotaExceeded("keys", len(self._kept), self.max_keys, len(self._kept) + 1)
        self._kept[key] = bytes(value)

    def delete(self, key: str) -> bool:
        with self._lock:
            return self._kept.pop(_key(key), None) is not None

    def keys(self, prefix: str) -> list[str]:
        return sorted(key for key in self._kept if key.startswith(prefix))

    def compare_and_set(self, key: str, expected: bytes | None, value: bytes | None) -> tuple[bool, bytes | None]:
        with self._lock:
            current = self._kept.get(_key(key))
            if current != expected:
                return False, current
            if value is None:
                self._kept.pop(key, None)
            else:
                self._put(key, value)
            return True, None


def _key(key: str) -> str:
    if not 1 <= len(key.encode()) <= 512:
        raise Invalid("a key has 1 to 512 bytes")
    return key


def memory_state() -> State:
    """State for tests."""
    return State(MemoryKeys())


class Host:
    """Starts a program as a host does, without a jail: `with Host("main.py") as host: host.call("greet", name="Ada")`."""

    def __init__(self, program: str, *, config: dict[str, Any] | None = None, env: dict[str, str] | None = None):
        self._directory = tempfile.TemporaryDirectory(prefix="talon-", dir="/tmp")
        surroundings = {"PATH": os.environ.get("PATH", ""), "PLUGIN_UNIX_SOCKET_DIR": self._directory.name}
        surroundings |= {COOKIE[0]: COOKIE[1], "PYTHONPATH": os.pathsep.join(sys.path), **(env or {})}
        self.process = subprocess.Popen(
            [sys.executable, program], env=surroundings, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        line = self.process.stdout.readline()
        fields = line.strip().split("|")
        if len(fields) < 5:
            self.process.kill()
            raise AssertionError(f"{program} ended with {self.process.wait()} and no handshake, but {line!r}")
        self._channel = grpc.insecure_channel(f"unix:{fields[3]}", [("grpc.default_authority", "localhost")])
        try:
            self.ask("Init", pb.PluginInitRequest(config_json=json.dumps(config or {})), empty_pb2.Empty)
            self.capabilities = self.ask("Capabilities", empty_pb2.Empty(), pb.PluginCapabilities)
        except BaseException:
            self.__exit__()
            raise

    def ask(self, method: str, request: Any, response: Any) -> Any:
        path = method if method.startswith("/") else f"/opentalon.plugin.v1.PluginService/{method}"
        rpc = self._channel.unary_unary(
            path, request_serializer=type(request).SerializeToString, response_deserializer=response.FromString
        )
        return rpc(request, timeout=PATIENCE_SECONDS)

    def call(self, action: str, **args: Any) -> pb.ToolResultResponse:
        """Calls a tool; the answer has `content`, `error` and `structured_content`."""
        request = pb.ToolCallRequest(
            id="call", plugin="test", action=action, args=_texts(args), arguments_json=json.dumps(args)
        )
        return self.ask("Execute", request, pb.ToolResultResponse)

    def events(self) -> Any:
        """The events that the program tells: first those that were not acknowledged. Ends when another one subscribes."""
        rpc = self._channel.unary_stream(
            "/talon.plugin.v1.EventSource/Subscribe",
            request_serializer=notices_pb2.SubscribeEventsRequest.SerializeToString,
            response_deserializer=notices_pb2.PluginEvent.FromString,
        )
        return rpc(notices_pb2.SubscribeEventsRequest(), timeout=PATIENCE_SECONDS)

    def acknowledge(self, *ids: str, refused: dict[str, str] | None = None) -> None:
        """Acknowledges events, as a host that has them on its disk, and refuses others with a reason."""
        request = notices_pb2.AcknowledgeEventsRequest(
            ids=ids, refused=[notices_pb2.RefusedEvent(id=id, reason=why) for id, why in (refused or {}).items()]
        )
        self.ask("/talon.plugin.v1.EventSource/Acknowledge", request, notices_pb2.AcknowledgeEventsResponse)

    def shutdown(self) -> int:
        """Asks the program to end; gives its exit code."""
        self.ask("/plugin.GRPCController/Shutdown", empty_pb2.Empty(), empty_pb2.Empty)
        return self.process.wait(PATIENCE_SECONDS)

    def __enter__(self) -> "Host":
        return self

    def __exit__(self, *_: Any) -> None:
        self._channel.close()
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self._directory.cleanup()


__all__ = ["Host", "MemoryKeys", "ToolError", "call", "memory_state"]
