"""A request hook in Python: notes in which script a message is written."""

import unicodedata

from talon_plugin import Plugin

plugin = Plugin("language-py", "Notes in which script messages are written")

SCRIPTS = ("LATIN", "CYRILLIC", "GREEK", "ARABIC", "HEBREW", "HIRAGANA", "KATAKANA", "HANGUL", "CJK")


@plugin.request_hook(read_only=True)
def script(message: str, session: dict, metadata: dict) -> dict:
    """Notes the script of most letters under `script`."""
    counts = dict.fromkeys(SCRIPTS, 0)
    for letter in filter(str.isalpha, message):
        first = unicodedata.name(letter, "").split(" ")[0]
        if first in counts:
            counts[first] += 1
    found = max(counts, key=counts.__getitem__)
    if not counts[found]:
        return {"verdict": "pass"}
    return {"verdict": "annotate", "metadata": {"script": found.lower()}}


if __name__ == "__main__":
    plugin.serve()
