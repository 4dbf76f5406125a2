"""A program for test_serve.py."""

import asyncio
import logging
import sys
import time

from talon_plugin import Context, EventRefused, EventSource, Plugin, ToolError

events = EventSource()
plugin = Plugin("program", "Of the tests.", events=events)


@plugin.init
def init(config: dict) -> None:
    if set(config) - {"word"}:
        raise ValueError("there is one setting: word")


@plugin.tool
def word(ctx: Context) -> str:
    """Says the configured word."""
    return ctx.config.get("word", "none")


@plugin.tool
async def slow(seconds: float) -> str:
    """Takes its time."""
    await asyncio.sleep(seconds)
    return "done"


@plugin.tool
def steps(count: int, ctx: Context) -> str:
    """Tells how far it has come."""
    for step in range(count):
        ctx.progress(step + 1, count, f"step {step + 1}")
    return "stepped"


@plugin.tool
def prints(text: str, ctx: Context) -> str:
    """Puts out a text while it runs."""
    ctx.output(text)
    return "printed"


@plugin.tool
def tell(id: str) -> str:
    """Tells an event, and waits until the host has it."""
    try:
        events.tell(id, "told", f"event {id}", severity="warning", fields={"from": "ada"}).result()
    except EventRefused as why:
        return f"refused: {why}"
    return f"{events.waiting} wait"


@plugin.tool
def until_given_up(ctx: Context) -> str:
    """Goes on until nobody waits."""
    while ctx.wait(60):
        pass
    logging.getLogger("program").info("given up")
    return "late"


@plugin.tool
def fails() -> str:
    """Has a defect."""
    raise KeyError("a secret of mine")


@plugin.tool
def exits() -> str:
    """Wants to end everything."""
    sys.exit(3)


@plugin.tool
def says(text: str, times: int = 1) -> str:
    """Repeats a text."""
    print("printed", flush=True)
    if not text:
        raise ToolError("say what?")
    return text * times


@plugin.tool
def half_a_character() -> str:
    """Answers with what UTF-8 cannot have."""
    return "a\udc80b"


@plugin.tool
def hangs() -> str:
    """Never ends, whatever happens."""
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    sys.stderr.write("a banner\n")
    plugin.serve()
