"""The tools of a plugin, and their answers as they travel."""

import functools
import inspect
import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import types
from .context import Context
from .errors import ToolError
from .events import EventSource
from .generated.opentalon.plugin.v1 import plugin_pb2 as pb

log = logging.getLogger("talon_plugin")

# How much of data alone is repeated as text for readers who see no data, in bytes of JSON.
_DIGEST_BYTES = 512
_ACTION_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass
class Output:
    """An answer: text, and data beside it that a program can read."""

    content: str
    structured: Any = None


@dataclass(frozen=True)
class ProposedJob:
    """A job that an action would like to have, in the role scheduled_task: `cron` or `every` says when it runs, and `arguments` are
    those beside `run`. Its id is the plugin's configured name, a dot, and `name`, by default the action's. Nothing runs before the
    operator accepts it."""

    cron: str = ""
    every: str = ""
    timezone: str = ""
    name: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def declared(self) -> pb.JobProposal:
        """The declaration for hosts."""
        arguments = json.dumps(dict(self.arguments), ensure_ascii=False, allow_nan=False) if self.arguments else ""
        return pb.JobProposal(
            name=self.name, cron=self.cron, every=self.every, timezone=self.timezone, arguments_json=arguments
        )


@dataclass(frozen=True)
class Tool:
    """One action and the function behind it."""

    name: str
    function: Callable
    description: str
    parameters: list[types.Parameter]
    context: str | None
    flags: Mapping[str, Any]

    def declared(self) -> pb.Action:
        """The declaration for hosts."""
        return pb.Action(
            name=self.name,
            description=self.description,
            parameters=[
                pb.Parameter(
                    name=parameter.name,
                    description=parameter.description,
                    type=parameter.type,
                    required=parameter.required,
                    schema=json.dumps(parameter.schema, ensure_ascii=False) if parameter.schema.keys() - {"type"} else "",
                )
                for parameter in self.parameters
            ],
            **self.flags,
        )

    def call(self, context: Context, texts: Mapping[str, str], arguments_json: str = "") -> Any:
        """The function's result, or its coroutine. `arguments_json` has the arguments with their types, where the host sends
        it. A ToolError when an argument does not fit."""
        # What the host put in for the tool, from the caller's session, is no argument of it.
        wanted = self.flags["inject_context_args"]
        context.injected = {**context.injected, **{name: texts[name] for name in wanted if name in texts}}
        given = {name: text for name, text in texts.items() if name not in wanted}
        typed = types.parse(arguments_json)
        if typed is not None:
            typed = {name: value for name, value in typed.items() if name not in wanted}
        values = types.read(self.parameters, self.name, given, typed)
        for parameter in self.parameters:
            default = inspect.signature(self.function).parameters[parameter.name].default
            if parameter.name not in values and default is inspect.Parameter.empty:
                values[parameter.name] = None
        if self.context:
            values[self.context] = context
        return self.function(**values)


class ToolSet:
    """What a plugin declares: a name, a description, and tools."""

    def __init__(self, name: str, description: str = "", *, events: EventSource | None = None):
        self.name = name
        self.description = description
        # Tells the host what happens elsewhere.
        self.event_source = events
        self.tools: dict[str, Tool] = {}
        self.config: dict[str, Any] = {}
        self._init: Callable[[dict[str, Any]], Any] | None = None

    def tool(
        self,
        function: Callable | None = None,
        *,
        name: str | None = None,
        read_only: bool = False,
        destructive: bool | None = None,
        user_only: bool = False,
        always_include: bool = False,
        inject: Iterable[str] = (),
        roles: Iterable[str] = (),
        jobs: Iterable[ProposedJob] = (),
    ) -> Callable:
        """Makes a tool of a function, which stays what it was. Its type hints become the parameters, its docstring the
        description; parameters are described by `Annotated[int, "how many"]` or the docstring's `Args:`.

        `roles` are those that the action would like to play, such as request_hook; an operator's entry under `extensions`
        makes it so. An action with roles is no tool and hidden from models, unless "tool" is one of them. `jobs` are those that
        it would like to have as a scheduled task."""

        def add(function: Callable) -> Callable:
            action = name or function.__name__
            if not _ACTION_NAME.fullmatch(action):
                raise ValueError(f"{action!r} is no name of an action: use 1 to 64 of a-z, A-Z, 0-9, _ and -")
            if action in self.tools:
                raise ValueError(f"there are two tools of the name {action!r}")
            parameters, context = types.parameters(function)
            proposed = [job.declared() for job in jobs]
            wanted = list(roles)
            if proposed and "scheduled_task" not in wanted:
                wanted.append("scheduled_task")
            flags: dict[str, Any] = {
                "read_only": read_only,
                "user_only": user_only,
                "always_include": always_include,
                "inject_context_args": list(inject),
                "roles": wanted,
                "proposed_jobs": proposed,
            }
            if destructive is not None:
                flags["destructive"] = destructive
            self.tools[action] = Tool(action, function, types.description(function), parameters, context, flags)
            return function

        return add if function is None else add(function)

    # Actions that look at messages: functions of `message`, `session` and `metadata` that return a verdict, such as
    # {"verdict": "pass"} (docs/extensions).
    filter = functools.partialmethod(tool, roles=("filter",))
    request_hook = functools.partialmethod(tool, roles=("request_hook",))
    response_hook = functools.partialmethod(tool, roles=("response_hook",))
    # An action that delivers events to people: a function of `event`, `events=()` and `attempt` that returns
    # {"status": "delivered"}, or "retry" or "refused" with a "reason".
    notification_sink = functools.partialmethod(tool, roles=("notification_sink",))
    # An action of a job: a function of `run` and of the job's own arguments.
    scheduled_task = functools.partialmethod(tool, roles=("scheduled_task",))
    # An action that says whose a credential is: a function of `scheme`, `credential` and `peer` that returns
    # {"outcome": "accepted", "subject": …, "scopes": […]} or {"outcome": "rejected", "reason": …}.
    auth_provider = functools.partialmethod(tool, roles=("auth_provider",))
    # An action that answers HTTP requests: a function of `method`, `path`, `query`, `headers`, `body`, `body_encoding` and
    # `subject` that returns {"status": 200, "headers": {…}, "body": …}.
    api_route = functools.partialmethod(tool, roles=("api_route",))
    # An action that keeps the plugins' state: a function of `op`, `key`, `value`, `expected`, `prefix`, `after` and `limit`, of which
    # all but `op` may be None, that returns {"outcome": "found", …} (docs/extensions/storage-backend.md). `talon_plugin.storage` opens
    # and seals the bytes.
    storage_backend = functools.partialmethod(tool, roles=("storage_backend",))
    # An action that sends to people on a channel: a function of `op` ("open", "send", "typing" or "fetch") and, each with a default, of
    # `id`, `conversation`, `text`, `buttons`, `attempt`, `file`, `offset` and `max_bytes` that returns {"status": "delivered"}, or
    # "retry" or "refused" with a "reason" (docs/extensions/channel.md). What people write is told with an EventSource.
    channel = functools.partialmethod(tool, roles=("channel",))

    def init(self, function: Callable[[dict[str, Any]], Any]) -> Callable:
        """Makes a function the reader of the settings; a ValueError or ToolError of it refuses them, and the operator reads
        its text. Without one, a plugin takes no settings."""
        self._init = function
        return function

    def configure(self, config: Mapping[str, Any]) -> None:
        """Takes the operator's settings."""
        if self._init is not None:
            self._init(dict(config))
        elif config:
            raise ValueError(f"this plugin takes no config; remove {', '.join(sorted(config))}")
        self.config = dict(config)

    def capabilities(self) -> pb.PluginCapabilities:
        """The capabilities for hosts."""
        actions = [tool.declared() for tool in self.tools.values()]
        return pb.PluginCapabilities(name=self.name, description=self.description, actions=actions)

    def find(self, action: str) -> Tool:
        """The tool of a name."""
        tool = self.tools.get(action)
        if tool is None:
            raise ToolError(f"no action {action[:64]!r}; there are {', '.join(self.tools) or 'none'}")
        return tool


def answer(call_id: str, result: Any) -> pb.ToolResultResponse:
    """A tool's result as it travels."""
    structured = None
    if isinstance(result, Output):
        content, structured = result.content, result.structured
    elif isinstance(result, str):
        content = result
    elif result is None:
        content = ""
    else:
        content, structured = None, result
    data = "" if structured is None else json.dumps(structured, ensure_ascii=False, allow_nan=False)
    return pb.ToolResultResponse(
        call_id=call_id,
        content=text(_digest(structured, data) if content is None else content),
        structured_content=text(data),
    )


def refusal(call_id: str, error: BaseException, action: str) -> pb.ToolResultResponse:
    """An error as it travels. What the tool did not mean to say is for the log alone."""
    if isinstance(error, ToolError):
        says = str(error) or "the tool says no"
    else:
        log.error("%s failed", action, exc_info=error)
        says = f"{action} failed; the plugin's log says why"
    return pb.ToolResultResponse(call_id=call_id, error=text(says))


def _digest(value: Any, data: str) -> str:
    if len(data) <= _DIGEST_BYTES:
        return data
    what = f"a list of {len(value)} items" if isinstance(value, list) else "data"
    return f"{what}, {len(data.encode())} bytes of JSON in the structured content"


def text(value: str) -> str:
    """As UTF-8 can have it: half a surrogate pair, as file names may hold, becomes a mark."""
    return value.encode("utf-8", "replace").decode("utf-8")
