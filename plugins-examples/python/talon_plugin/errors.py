"""How a tool says no."""


class ToolError(Exception):
    """The tool says no: an ordinary answer, whose text goes to the caller. Say what would work."""


class StateError(ToolError):
    """The state cannot be used. A tool that lets it through answers with its text."""


class NotServed(StateError):
    """This host keeps no state."""


class Unavailable(StateError):
    """The state is not available now, or out of space. Whether a change was made is unknown: check first."""


class Invalid(StateError):
    """A key or value that cannot be."""


class Contended(StateError):
    """Others were faster too often in a row. Spread the value over several keys."""


class QuotaExceeded(StateError):
    """The plugin's quota is used up. Reading, deleting and shrinking still work."""

    def __init__(self, resource: str, used: int, limit: int, wanted: int):
        super().__init__(f"there is no room for more: {wanted} {resource} would be kept, {limit} may be")
        self.resource = resource
        self.used = used
        self.limit = limit
        self.wanted = wanted


class ModelError(ToolError):
    """There is no completion. A tool that lets it through answers with its text."""

    def __init__(self, reason: str, text: str):
        super().__init__(text)
        self.reason = reason
        """not_granted, invalid, unknown_model, no_call, too_many_calls, over_budget, busy, no_model, timed_out, cancelled or
        unavailable."""
