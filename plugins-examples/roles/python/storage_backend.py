"""A storage backend: keeps each key in a file of its own. Enough for some thousand keys: a page reads all of them.

Its entry has `config: { dir: /var/lib/store }` and `sandbox: { fs: { write: [/var/lib/store] } }`.
"""

import json
import os
import pathlib
import secrets
import threading

from talon_plugin import Plugin
from talon_plugin.storage import seal, unseal

plugin = Plugin("hello-py", "Keeps the state of plugins in files.")
# Of two writes at once, one compares first.
writing = threading.Lock()
directory: pathlib.Path | None = None


@plugin.init
def configure(config: dict) -> None:
    global directory
    if set(config) - {"dir"}:
        raise ValueError("this plugin takes the setting dir alone")
    directory = pathlib.Path(config["dir"]) if "dir" in config else None


def file_of(key: bytes) -> pathlib.Path:
    # A digest has the right length and the right characters for a name.
    return directory / seal(key)["sha256"]


def read(path: pathlib.Path) -> tuple[bytes, str, bytes]:
    revision, key, value = path.read_bytes().split(b"\n", 2)
    return unseal(json.loads(key)), revision.decode(), value


def lookup(key: bytes) -> tuple[bytes, str, bytes] | None:
    try:
        return read(file_of(key)) if directory else None
    except FileNotFoundError:
        return None


def sync() -> None:
    # A name in a directory is durable once the directory is.
    opened = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def write(key: bytes, revision: str, value: bytes) -> None:
    # After a power cut the file is there as a whole, or not at all.
    path = file_of(key)
    following = path.with_suffix(".next")
    with open(following, "wb") as file:
        file.write(f"{revision}\n{json.dumps(seal(key))}\n".encode() + value)
        file.flush()
        os.fsync(file.fileno())
    following.rename(path)
    sync()


@plugin.storage_backend
def store(
    op: str,
    key: dict | None = None,
    value: dict | None = None,
    expected: str | None = None,
    prefix: dict | None = None,
    after: dict | None = None,
    limit: int | None = None,
) -> dict:
    """Keeps the state of plugins."""
    with writing:
        if op == "scan":
            begins, behind = (unseal(part) if part else b"" for part in (prefix, after))
            files = [path for path in directory.iterdir() if not path.suffix] if directory else []
            rows = sorted(row for row in map(read, files) if row[0].startswith(begins) and row[0] > behind)
            page = rows[: limit or 500]
            items = [{"key": seal(found), "revision": revision, "bytes": len(data)} for found, revision, data in page]
            return {"outcome": "page", "items": items, "more": len(rows) > len(page)}
        if op not in ("get", "set", "delete"):
            raise ValueError("this storage backend knows get, set, delete and scan")
        name = unseal(key or {})
        row = lookup(name)
        if op == "get":
            return {"outcome": "found", "revision": row[1], "value": seal(row[2])} if row else {"outcome": "absent"}
        if directory is None:
            return {"outcome": "refused", "reason": "config: dir is not set"}
        if (row[1] if row else None) != expected:
            return {"outcome": "conflict"}
        if op == "set":
            # One that no key ever had.
            revision = secrets.token_hex(16)
            write(name, revision, unseal(value or {}))
            return {"outcome": "stored", "revision": revision}
        file_of(name).unlink()
        sync()
        return {"outcome": "deleted"}


if __name__ == "__main__":
    plugin.serve()
