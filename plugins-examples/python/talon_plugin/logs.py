"""Log lines as hosts of go-plugin read them: hclog's JSON on stderr, a line a record."""

import datetime
import json
import logging
import os
import sys

_LEVELS = {"DEBUG": "debug", "INFO": "info", "WARNING": "warn", "ERROR": "error", "CRITICAL": "error"}


class HclogFormatter(logging.Formatter):
    """One JSON object a record, its traceback within."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.datetime.fromtimestamp(record.created, datetime.timezone.utc)
        line = {
            "@level": _LEVELS.get(record.levelname, "info"),
            "@message": record.getMessage(),
            "@module": record.name,
            "@timestamp": at.isoformat(timespec="microseconds").replace("+00:00", "Z"),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def to_stderr() -> None:
    """Sends all logging of this process to the host. TALON_LOG (debug, info, warn, error) says from which level on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(HclogFormatter())
    wanted = {"debug": logging.DEBUG, "warn": logging.WARNING, "error": logging.ERROR}
    level = wanted.get(os.environ.get("TALON_LOG", ""), logging.INFO)
    logging.basicConfig(level=level, handlers=[handler], force=True)
