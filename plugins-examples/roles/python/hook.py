"""A hook: notes what is urgent."""

from talon_plugin import Plugin

plugin = Plugin("hello-py", "Looks at messages.")


@plugin.request_hook(read_only=True)
def look(message: str, session: dict, metadata: dict) -> dict:
    """Notes that a message is urgent."""
    if "urgent" in message.lower():
        return {"verdict": "annotate", "metadata": {"priority": "high"}}
    return {"verdict": "pass"}


if __name__ == "__main__":
    plugin.serve()
