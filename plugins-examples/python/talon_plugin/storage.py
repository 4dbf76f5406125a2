"""The envelope of bytes in the role storage_backend: base64url without padding, and their SHA-256."""

import base64
import hashlib
from typing import Mapping

from .errors import ToolError


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def seal(data: bytes) -> dict[str, str]:
    """Puts bytes into their envelope."""
    return {"data": _encode(data), "sha256": _encode(hashlib.sha256(data).digest())}


def unseal(envelope: Mapping[str, str]) -> bytes:
    """Takes the bytes out; a ToolError if they are not those of the digest."""
    try:
        text = envelope["data"]
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (KeyError, TypeError, ValueError) as error:
        raise ToolError("an envelope is not base64url without padding") from error
    if _encode(hashlib.sha256(data).digest()) != envelope.get("sha256"):
        raise ToolError("the digest of an envelope is one of other bytes")
    return data
