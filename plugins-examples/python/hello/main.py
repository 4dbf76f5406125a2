"""The smallest plugin in Python: one tool that greets."""

from typing import Annotated

from talon_plugin import Plugin, ToolError

plugin = Plugin("hello-py", "Greets people.")


@plugin.tool(read_only=True)
def greet(name: Annotated[str, "Whom to greet."]) -> str:
    """Greets somebody by name."""
    if not name.strip():
        raise ToolError("greet whom? give a name")
    return f"Hello, {name}!"


if __name__ == "__main__":
    plugin.serve()
