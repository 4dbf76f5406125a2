"""What the clients' programs in Python share: each check ends as one line of JSON.

    PROGRAM COMMAND ARGS…        the command of `talon mcp`
"""

import asyncio
import json
import os
import subprocess
import sys
import time

COMMAND, ARGS = sys.argv[1], sys.argv[2:]
ENVIRONMENT = dict(os.environ)
SIMPLE, ERROR, PROGRESS = "kit__test_simple_text", "kit__test_error_handling", "kit__test_tool_with_progress"
PROMISED, SLOW, IMAGE = "kit__promised", "kit__slow", "everything__get-tiny-image"
# A bound for hangs: a step takes a second at most on an idle machine.
STEP_TIMEOUT_SECONDS = 60


def report(check, ok, note=""):
    print(json.dumps({"check": check, "ok": bool(ok), "note": str(note)[:600]}), flush=True)


async def attempt(check, step):
    """Reports what a step says: True, or what came instead. An exception is a failure with its text."""
    try:
        said = await asyncio.wait_for(step(), STEP_TIMEOUT_SECONDS)
    except Exception as error:  # noqa: BLE001
        report(check, False, f"{type(error).__name__}: {error}")
    else:
        report(check, said is True, said)


def in_flight():
    """How many calls of the plugin `kit` run."""
    command = [COMMAND, *ARGS[:-1], "plugin", "show", "kit", "--output", "json"]
    shown = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return shown["plugin"]["calls_in_flight"]


async def until_in_flight(wanted):
    """Whether that many calls of the plugin run before a third of the call's own timeout is over."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        if await asyncio.to_thread(in_flight) == wanted:
            return True
        await asyncio.sleep(0.1)
    return False


async def cancels(call):
    """Starts a call, gives it up once it runs, and looks whether it ends in the plugin."""
    task = asyncio.create_task(call(SLOW))
    if not await until_in_flight(1):
        return "the call never ran"
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return await until_in_flight(0) or "the call runs on: no cancellation was sent"


class Answer:
    """What a client made of an answer: its texts, whether it is an error, its structured content, the kinds of its blocks."""

    def __init__(self, texts, error=False, structured=None, kinds=()):
        self.text, self.error, self.structured, self.kinds = "\n".join(texts), error, structured, list(kinds)

    @classmethod
    def of(cls, result):
        """Of a `CallToolResult`, with the names of either version of the SDK."""
        error = getattr(result, "is_error", None) or getattr(result, "isError", False)
        structured = getattr(result, "structured_content", None) or getattr(result, "structuredContent", None)
        texts = [block.text for block in result.content if block.type == "text"]
        return cls(texts, error, structured, [block.type for block in result.content])


def progress_of(client, parameter):
    """What `run` takes as `progress`: the reports of a call, received by the function that `call_tool` takes as `parameter`."""

    async def progress(name):
        received = []

        async def receive(done, total, message):
            received.append(done)

        await client.call_tool(name, {}, **{parameter: receive})
        return received

    return progress


async def run(names, call, progress=None):
    """All checks: `names()` lists the tools, `call(name)` is an `Answer`, `progress(name)` the reports of a call."""

    async def lists():
        found = set(await names())
        return {SIMPLE, IMAGE} <= found or sorted(found)

    async def calls():
        answer = await call(SIMPLE)
        return answer.text.startswith("[plugin_output]") or answer.text

    async def errors():
        try:
            answer = await call(ERROR)
        except Exception as error:  # noqa: BLE001
            return "intentionally" in str(error) or f"another error: {error}"
        return (answer.error and "intentionally" in answer.text) or f"no error: {answer.text}"

    async def progresses():
        if progress is None:
            return "the client has no way to receive it"
        return bool(await progress(PROGRESS)) or "no report"

    async def structures():
        found = (await call(PROMISED)).structured
        return found == {"sum": 3} or f"{found}"

    async def pictures():
        kinds = (await call(IMAGE)).kinds
        return "image" in kinds or f"{kinds}"

    steps = {"list": lists, "call": calls, "error": errors, "progress": progresses, "structured": structures}
    steps |= {"image": pictures, "cancel": lambda: cancels(call)}
    for check, step in steps.items():
        await attempt(check, step)
