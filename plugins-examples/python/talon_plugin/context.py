"""What a call knows of itself."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from .errors import ModelError, NotServed, ToolError
from .model import Model, Models
from .state import State


class Context:
    """One call. A tool gets it by a parameter of this type, whatever the parameter's name."""

    def __init__(
        self,
        call_id: str = "call",
        *,
        config: Mapping[str, Any] | None = None,
        seconds: float | None = None,
        state: "State | None" = None,
        models: "Models | None" = None,
        injected: Mapping[str, str] | None = None,
        credentials: Mapping[str, tuple[str, str]] | None = None,
        on_progress: Callable[[float, float | None, str], None] | None = None,
    ):
        self.call_id = call_id
        """The host's name for this call."""
        self.config: Mapping[str, Any] = config or {}
        """The operator's settings."""
        self.injected: Mapping[str, str] = injected or {}
        """Values of the caller's session that the tool asked for (`inject=`) and the operator granted."""
        self.credentials: Mapping[str, tuple[str, str]] = credentials or {}
        """Header and value of each credential that the operator configured, by its name."""
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._cancelled = threading.Event()
        self._state = state
        self._models = models
        self._on_progress = on_progress

    def remaining(self) -> float | None:
        """How many seconds the caller still waits; None when there is no deadline."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    def is_cancelled(self) -> bool:
        """Whether the call was cancelled: the caller gave up, or the deadline has passed."""
        return self._cancelled.is_set() or self.remaining() == 0.0

    def check(self) -> None:
        """Raises if the call was cancelled. Long loops should call it now and then."""
        if self.is_cancelled():
            raise ToolError("the call was given up")

    def wait(self, seconds: float) -> bool:
        """Sleeps, but not past the end of the call; returns whether the call still runs."""
        left = self.remaining()
        self._cancelled.wait(seconds if left is None else min(seconds, left))
        return not self.is_cancelled()

    def progress(self, progress: float, total: float | None = None, message: str = "") -> None:
        """Reports how far the call has come. Never waits, never fails; dropped when no host listens."""
        if self._on_progress is not None:
            self._on_progress(progress, total, message)

    @property
    def state(self) -> State:
        """The plugin's own key-values; NotServed where the host keeps none."""
        if self._state is None:
            raise NotServed("this host keeps no state: TALON_STATE_SOCKET is not set")
        return self._state

    @property
    def model(self) -> Model:
        """The granted models, for this call; ModelError where the operator grants none."""
        if self._models is None:
            raise ModelError("not_granted", "this plugin is granted no model: TALON_MODEL_SOCKET is not set")
        return Model(self._models, self.call_id)

    def _cancel(self) -> None:
        self._cancelled.set()
