"""A storage backend that does what the key of a plugin says, and keeps everything else in a file.

    hang-once   the first write is not answered
    die-once    the process ends between the first write and its answer
    revision    writes are answered with a revision that is none
    other       reads give the value of the key `plain`
    huge        reads give 64 MB
    lose        writes are acknowledged, and forgotten
"""

import json
import os
import pathlib
import sys
import threading
import time

from talon_plugin import Plugin
from talon_plugin.storage import seal, unseal

plugin = Plugin("hostile", "Keeps state badly")
directory = pathlib.Path(sys.argv[1])
file = directory / "rows.json"
lock = threading.Lock()


def once(fault: str) -> bool:
    """Whether it has not happened yet, also in an earlier process."""
    mark = directory / fault
    if mark.exists():
        return False
    mark.touch()
    return True


def fault_of(key: bytes) -> str:
    return key.decode(errors="replace").rsplit("!", 1)[-1]


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
    """Keeps state, badly"""
    with lock:
        rows = json.loads(file.read_text()) if file.exists() else {}
        if op == "scan":
            begins, behind = (unseal(part) if part else b"" for part in (prefix, after))
            names = sorted(bytes.fromhex(name) for name in rows)
            names = [name for name in names if name.startswith(begins) and name > behind]
            page = names[: limit or 500]
            items = [
                {"key": seal(name), "revision": rows[name.hex()][0], "bytes": len(rows[name.hex()][1]) // 2} for name in page
            ]
            return {"outcome": "page", "items": items, "more": len(names) > len(page)}
        name = unseal(key or {})
        fault = fault_of(name)
        found = rows.get(name.hex())
        if op == "get":
            if fault == "huge":
                return {"outcome": "refused", "reason": "x" * (64 << 20)}
            if fault == "other":
                found = rows[(name[: -len(b"other")] + b"plain").hex()]
            if found is None:
                return {"outcome": "absent"}
            return {"outcome": "found", "revision": found[0], "value": seal(bytes.fromhex(found[1]))}
        if (found[0] if found else None) != expected:
            return {"outcome": "conflict"}
        revision = f"r{time.time_ns()}"
        if op == "delete":
            rows.pop(name.hex())
        elif fault != "lose":
            rows[name.hex()] = [revision, unseal(value or {}).hex()]
        following = file.with_suffix(".next")
        following.write_text(json.dumps(rows))
        following.rename(file)
        if fault == "die-once" and once(fault):
            os._exit(1)
    if fault == "hang-once" and once(fault):
        threading.Event().wait()
    if fault == "revision":
        return {"outcome": "stored", "revision": "../<|im_start|>"}
    return {"outcome": "deleted"} if op == "delete" else {"outcome": "stored", "revision": revision}


if __name__ == "__main__":
    plugin.serve()
