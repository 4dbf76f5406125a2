"""A channel: each file in a directory is a message, named after its sender (`ada.1`), and answers go into its log.

Its entry has `config: { dir: /var/lib/chat }`, `sandbox: { fs: { write: [/var/lib/chat] } }` and `events: { per_minute: 600 }`. Write a message
elsewhere, and move it there: then it is whole.
"""

import logging
import pathlib
import re
import threading
import time
from concurrent.futures import Future

from talon_plugin import EventQueueFull, EventSource, Plugin

log = logging.getLogger(__name__)
events = EventSource()
plugin = Plugin("hello-py", "People talk to the agent by files.", events=events)

# How often the directory is looked at, in seconds.
INTERVAL = 1.0


@plugin.init
def init(config: dict) -> None:
    """One setting: `dir`. Without it nobody is heard."""
    # Asks the agent to open the channel.
    events.tell(f"closed/{time.time_ns()}", "channel.closed", "The channel's plugin has started")
    if "dir" in config:
        threading.Thread(target=listen, args=(pathlib.Path(config["dir"]),), daemon=True).start()


def tell(path: pathlib.Path) -> Future:
    """Tells of a message. Its id is the same whenever it is told, so that a message is one turn; of another message it is another one."""
    sender = path.name.split(".")[0]
    name = re.sub(r"[^A-Za-z0-9.]", "", path.name)[:80]
    # An answer goes to the conversation. In a group there is a field `group_id`, too.
    fields = {"conversation": sender, "sender_id": sender, "sender_name": sender}
    text = path.read_text(errors="replace")
    return events.tell(f"{name}/{path.stat().st_mtime_ns}", "channel.message", f"A message of {sender}", details=text, fields=fields)


def messages(directory: pathlib.Path) -> list:
    """The messages in the directory, by their names. What begins with a dot is none."""
    try:
        return sorted(path for path in directory.iterdir() if not path.name.startswith(".") and path.is_file())
    except OSError as error:
        log.warning("%s: %s", directory, error)
        return []


def settle(path: pathlib.Path, receipt: Future) -> None:
    """Removes a message that the host has on its disk; one that it refuses is put aside as `.NAME`."""
    refusal = receipt.exception()
    if refusal is None:
        path.unlink(missing_ok=True)
    else:
        log.warning("%s: %s", path, refusal)
        path.rename(path.with_name(f".{path.name}"))


def listen(directory: pathlib.Path) -> None:
    """Tells of each message until the host has it on its disk."""
    told = {}
    while True:
        for path in messages(directory):
            try:
                if path not in told:
                    told[path] = tell(path)
            except EventQueueFull:
                # The others wait in the directory.
                break
            except OSError as error:
                # The others are told all the same.
                log.warning("%s: %s", path, error)
        for path in [path for path, receipt in told.items() if receipt.done()]:
            try:
                settle(path, told.pop(path))
            except OSError as error:
                log.warning("%s: %s", path, error)
        time.sleep(INTERVAL)


@plugin.channel
def talk(
    op: str,
    id: str = "",
    conversation: str = "",
    text: str = "",
    buttons: list = (),
    attempt: int = 0,
    file: str = "",
    offset: int = 0,
    max_bytes: int = 0,
) -> dict:
    """Writes an answer into the log."""
    if op == "fetch":
        return {"status": "refused", "reason": "messages have no files"}
    # A service that wants a credential gets it with op "open": it comes with each call.
    if op == "send":
        # The id is the same in every attempt: a service that knows it already drops it.
        log.warning("to %s: %s (%s)", conversation, text, id)
    return {"status": "delivered"}


if __name__ == "__main__":
    plugin.serve()
