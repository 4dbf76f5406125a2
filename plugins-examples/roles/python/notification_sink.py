"""A notification sink: writes events into its log."""

import logging

from talon_plugin import Plugin

log = logging.getLogger(__name__)
plugin = Plugin("hello-py", "Delivers events.")


@plugin.notification_sink
def send(event: dict, attempt: int, events: list = ()) -> dict:
    """Writes an event into the log."""
    if not event["summary"]:
        return {"status": "refused", "reason": "the event says nothing"}
    # The id is the same in every attempt: a receiver that knows it already drops it.
    log.warning("%s: %s (%s)", event["kind"], event["summary"], event["id"])
    return {"status": "delivered"}


if __name__ == "__main__":
    plugin.serve()
