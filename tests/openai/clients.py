"""What the scripts share: address and token from the command line, and a tool of the client's."""

import sys

BASE_URL, TOKEN = sys.argv[1:3]
MODEL = "talon"

LOOK = {
    "name": "look",
    "description": "Looks how it is somewhere.",
    "parameters": {
        "type": "object",
        "properties": {"at": {"type": "string"}},
        "required": ["at"],
        "additionalProperties": False,
    },
}


def look(at: str) -> str:
    """Looks how it is somewhere."""
    return f"It is warm at {at}."
