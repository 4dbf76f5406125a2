"""A scheduled task: says which run it is."""

from typing import Annotated

from talon_plugin import Plugin, ProposedJob

plugin = Plugin("hello-py", "Runs at planned times.")


# The job that the plugin would like to have: `talon schedule accept` has it run.
@plugin.scheduled_task(jobs=[ProposedJob(cron="30 3 * * *", timezone="Europe/Berlin", arguments={"count": 2})])
def run(run: dict, count: Annotated[int, "How many things to do."] = 1) -> dict:
    """Does what the job is for."""
    return {"job": run["job"], "count": count}


if __name__ == "__main__":
    plugin.serve()
