"""Counters kept by the host: a plugin's state in Python."""

from typing import Annotated

from talon_plugin import Context, Plugin, ToolError, Unavailable

plugin = Plugin("counter-py", "Counts, and goes on counting after a restart")

Name = Annotated[str, "Which counter"]


@plugin.tool
def increment(name: Name, ctx: Context) -> str:
    """Adds one and gives the count"""

    def change(old: bytes | None) -> bytes:
        try:
            return str(int(old or b"0") + 1).encode()
        except ValueError:
            raise ToolError(f"{name} does not hold a count") from None

    # Not get and set: another call, or another instance of this plugin, may count in between.
    try:
        return ctx.state.update(f"counter/{name}", change).decode()
    except Unavailable:
        raise ToolError("the counters are not available for now: try again later") from None


@plugin.tool
def reset(name: Name, ctx: Context) -> str:
    """Begins again at zero"""
    ctx.state.set(f"counter/{name}", b"0")
    return "0"


if __name__ == "__main__":
    plugin.serve()
