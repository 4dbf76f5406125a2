"""Tool plugins for Talon in Python: a typed function becomes a tool.

    from talon_plugin import Plugin, ToolError

    plugin = Plugin("hello", "Greets people.")

    @plugin.tool(read_only=True)
    def greet(name: str) -> str:
        \"\"\"Greets somebody by name.\"\"\"
        return f"Hello, {name}!"

    if __name__ == "__main__":
        plugin.serve()

The rest is done for it: socket, handshake, gRPC, arguments, health, deadlines, the end. docs/write-a-plugin.md tells the
whole of it; `talon_plugin.testing` calls tools without a host, and programs without a supervisor.
"""

from .context import Context
from .errors import (
    Contended,
    Invalid,
    ModelError,
    NotServed,
    QuotaExceeded,
    StateError,
    ToolError,
    Unavailable,
)
from .events import EventQueueFull, EventRefused, EventSource
from .model import Completion, Model
from .plugin import Plugin
from .state import State
from .tools import Output, ProposedJob

__all__ = [
    "Completion",
    "Contended",
    "Context",
    "EventQueueFull",
    "EventRefused",
    "EventSource",
    "Invalid",
    "Model",
    "ModelError",
    "NotServed",
    "Output",
    "ProposedJob",
    "Plugin",
    "QuotaExceeded",
    "State",
    "StateError",
    "ToolError",
    "Unavailable",
]
