"""The plugin's own key-values, which outlive its process. No other plugin sees them; all its instances share them."""

import json
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

import grpc

from .errors import Contended, Invalid, QuotaExceeded, StateError, ToolError, Unavailable
from .generated.talon.state.v1 import state_pb2 as pb

# Seconds that one operation may take. The socket is on this machine, and the host answers after the value is on the disk.
TIMEOUT = 5
# How often a change tries. Each time it fails, somebody else has changed the value.
MAX_TRIES = 64
# How many keys of one prefix are listed: as many as a plugin may have unless its operator gave it more.
MAX_KEYS = 100_000

_T = TypeVar("_T")


class Keys(Protocol):
    """What keeps bytes under keys: the host, or `testing.MemoryKeys`."""

    def get(self, key: str) -> bytes | None: ...
    def set(self, key: str, value: bytes) -> None: ...
    def delete(self, key: str) -> bool: ...
    def keys(self, prefix: str) -> list[str]: ...
    def compare_and_set(self, key: str, expected: bytes | None, value: bytes | None) -> tuple[bool, bytes | None]: ...


class State:
    """Bytes under keys of 1 to 512 bytes, each value up to 1 MiB. Calls come side by side: change, do not overwrite."""

    def __init__(self, keys: Keys):
        self._keys = keys

    def get(self, key: str) -> bytes | None:
        """The value; None when there is no such key."""
        return self._keys.get(key)

    def set(self, key: str, value: bytes) -> None:
        """Keeps a value; it is on the disk when this returns."""
        self._keys.set(key, value)

    def delete(self, key: str) -> bool:
        """Deletes a key; says whether it was there."""
        return self._keys.delete(key)

    def keys(self, prefix: str = "") -> list[str]:
        """The keys that begin so, sorted."""
        return self._keys.keys(prefix)

    def compare_and_set(
        self, key: str, expected: bytes | None, value: bytes | None
    ) -> tuple[bool, bytes | None]:
        """Sets (None: deletes) only if `expected` still stands there (None: if there is no such key). Gives whether it
        did, and otherwise what stands there."""
        return self._keys.compare_and_set(key, expected, value)

    def update(self, key: str, change: Callable[[bytes | None], bytes | None]) -> bytes | None:
        """Reads, changes, and writes only if what was read still stands there; otherwise changes what does. So nothing is
        lost that another call, or another instance of this plugin, wrote in between."""
        old = self.get(key)
        for _ in range(MAX_TRIES):
            new = change(old)
            swapped, current = self.compare_and_set(key, old, new)
            if swapped:
                return new
            old = current
        raise Contended(f"{key} is changed by too many at once: try again")

    def get_json(self, key: str, default: Any = None) -> Any:
        """A value that is JSON."""
        text = self.get(key)
        return default if text is None else _parsed(key, text)

    def set_json(self, key: str, value: Any) -> None:
        """Keeps a value as JSON."""
        self.set(key, _text(value))

    def update_json(self, key: str, change: Callable[[Any], _T], default: Any = None) -> _T:
        """Changes a value that is JSON; `change` gets it (or the default) and returns the new one."""
        made: list[_T] = []

        def text(old: bytes | None) -> bytes:
            made[:] = [change(json.loads(json.dumps(default)) if old is None else _parsed(key, old))]
            return _text(made[0])

        self.update(key, text)
        return made[0]


def _text(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _parsed(key: str, text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise StateError(f"what is kept under {key} is not JSON") from None


class HostKeys:
    """The host's, over the socket that it names."""

    def __init__(self, socket: str):
        # The channel connects at its first use and again when it has to; the bounds keep it from waiting long between
        # attempts. On a unix socket gRPC's C library names the path as the authority, which is none, and strict servers
        # reset such a request: it is said here instead.
        options = [
            ("grpc.default_authority", "localhost"),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 2000),
        ]
        self._channel = grpc.insecure_channel(f"unix:{socket}", options)

    def get(self, key: str) -> bytes | None:
        answer = self._ask("Get", pb.GetRequest(key=key), pb.GetResponse)
        return answer.value if answer.HasField("value") else None

    def set(self, key: str, value: bytes) -> None:
        self._ask("Set", pb.SetRequest(key=key, value=value), pb.SetResponse)

    def delete(self, key: str) -> bool:
        return self._ask("Delete", pb.DeleteRequest(key=key), pb.DeleteResponse).existed

    def keys(self, prefix: str) -> list[str]:
        found: list[str] = []
        for page in self._pages(prefix):
            found.extend(page)
            if len(found) > MAX_KEYS:
                raise ToolError(f"more than {MAX_KEYS} keys begin with {prefix!r}: ask for a longer prefix")
        return found

    def _pages(self, prefix: str) -> Iterator[list[str]]:
        token = ""
        while True:
            answer = self._ask("Keys", pb.KeysRequest(prefix=prefix, page_token=token), pb.KeysResponse)
            yield list(answer.keys)
            token = answer.next_page_token
            if not token:
                return

    def compare_and_set(
        self, key: str, expected: bytes | None, value: bytes | None
    ) -> tuple[bool, bytes | None]:
        change = pb.CompareAndSetRequest(key=key, expected=expected, value=value)
        answer = self._ask("CompareAndSet", change, pb.CompareAndSetResponse)
        return answer.swapped, answer.current if answer.HasField("current") else None

    def _ask(self, method: str, request: Any, answer: Any) -> Any:
        call = self._channel.unary_unary(
            f"/talon.state.v1.State/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=answer.FromString,
        )
        try:
            return call(request, timeout=TIMEOUT)
        except grpc.RpcError as error:
            raise _told(error) from error


def _told(error: Any) -> StateError:
    code, says = error.code(), error.details() or ""
    if code == grpc.StatusCode.RESOURCE_EXHAUSTED:
        quota = _quota(details(error, "talon.state.v1.QuotaExceeded"))
        return quota or Unavailable(f"the state is busy or has no room: {says}")
    if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
        return Unavailable("the state is not available for now: try again later")
    if code == grpc.StatusCode.INVALID_ARGUMENT:
        return Invalid(says)
    return StateError(f"the state refused: {says}")


def _quota(text: bytes | None) -> QuotaExceeded | None:
    if text is None:
        return None
    detail = pb.QuotaExceeded.FromString(text)
    return QuotaExceeded(detail.resource, detail.used, detail.limit, detail.wanted)


def details(error: Any, message: str) -> bytes | None:
    """A detail of a google.rpc.Status, whose message would be a whole package more to install."""
    status = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
    for number, any_message in _fields(status):
        if number != 3:
            continue
        parts = dict(_fields(any_message))
        if parts.get(1, b"").endswith(b"/" + message.encode()):
            return parts.get(2, b"")
    return None


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields with a length of a protobuf message; ends at the first that is cut."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while at < len(message):
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
        return value

    while at < len(message):
        tag = varint()
        if tag & 7 == 0:
            varint()
        elif tag & 7 == 2:
            length = varint()
            if at + length > len(message):
                return
            yield tag >> 3, message[at : at + length]
            at += length
        else:
            return
