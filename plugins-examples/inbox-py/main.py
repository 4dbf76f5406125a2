"""An event source in Python: tells of files that are put into a directory."""

import os
import pathlib
import re
import threading
import urllib.parse

from talon_plugin import EventQueueFull, EventRefused, EventSource, Plugin, ToolError

events = EventSource()
plugin = Plugin("inbox-py", "Tells of files that are put into a directory", events=events)

# How often the directory is looked at, in seconds.
INTERVAL = 1.0
# How many files are looked at in one round; the others wait in the directory.
MAX_FILES = 1000

looked: threading.Event = threading.Event()
directory: pathlib.Path | None = None


@plugin.init
def init(config: dict) -> None:
    """One setting: `directory`. A file in its `new` is told of, and moved to its `told` once the host has the event."""
    global directory
    if set(config) != {"directory"} or not isinstance(config["directory"], str):
        raise ValueError("there is one setting: directory, a path that the plugin may write")
    if directory is None:
        directory = pathlib.Path(config["directory"])
        threading.Thread(target=watch, daemon=True).start()


@plugin.tool(read_only=True)
def waiting() -> list[str]:
    """Lists the files that were not told of yet."""
    if directory is None:
        raise ToolError("there is no setting `directory`")
    return sorted(os.listdir(directory / "new"))[:MAX_FILES]


def watch() -> None:
    """Tells of each file, at least once: one whose event was not acknowledged is still there when the plugin starts again."""
    told = set()
    while True:
        try:
            names = sorted(os.listdir(directory / "new"))[:MAX_FILES]
        except OSError as error:
            print(f"cannot look into {directory}: {error}", flush=True)
            names = []
        told &= set(names)
        for name in names:
            if name not in told:
                try:
                    settled = events.tell(event_id(name), "file.arrived", f"The file {name} arrived", fields={"file": name})
                except EventQueueFull:
                    break
                told.add(name)
                settled.add_done_callback(lambda settled, name=name: move(settled, name))
        looked.wait(INTERVAL)


def event_id(name: str) -> str:
    """The same for the same file, whenever it is asked: so the host drops what it has."""
    changed = os.stat(directory / "new" / name).st_mtime_ns if (directory / "new" / name).exists() else 0
    plain = re.sub(r"[^A-Za-z0-9_.-]", ":", urllib.parse.quote(name, safe=""))
    return f"{plain[-100:]}/{changed}"


def move(settled, name: str) -> None:
    """Out of the way: the event is on the host's disk, or refused for good."""
    if isinstance(settled.exception(), EventRefused):
        print(f"{name}: {settled.exception()}", flush=True)
    (directory / "told").mkdir(exist_ok=True)
    try:
        os.replace(directory / "new" / name, directory / "told" / name)
    except FileNotFoundError:
        # Somebody took it away.
        pass


if __name__ == "__main__":
    plugin.serve()
