"""A scheduled task: says which run it is."""

from typing import Annotated

from talon_plugin import Plugin

plugin = Plugin("hello-py", "Runs at planned times.")


@plugin.scheduled_task
def run(run: dict, count: Annotated[int, "How many things to do."] = 1) -> dict:
    """Does what the job is for."""
    return {"job": run["job"], "count": count}


if __name__ == "__main__":
    plugin.serve()
