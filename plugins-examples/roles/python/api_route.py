"""An API route: greets who asks."""

from talon_plugin import Plugin

plugin = Plugin("hello-py", "Answers requests.")


@plugin.api_route(read_only=True)
def reply(
    method: str, path: str, query: dict, headers: dict, body: str, subject: str, body_encoding: str = "text"
) -> dict:
    """Greets who asks."""
    return {"status": 200, "headers": {"content-type": "text/plain; charset=utf-8"}, "body": f"Hello, {subject}!"}


if __name__ == "__main__":
    plugin.serve()
