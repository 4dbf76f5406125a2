"""The times of cron expressions by croniter, on local times without a time zone, and the time zone by Python's zoneinfo.

Each line of the input is JSON: {"cron", "zone", "after" (seconds since 1970), "count"}. Each line of the output is a list of
[seconds since 1970, whether the local day has no change of the clock].
"""

import json
import sys
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from croniter import croniter


def day_is_plain(zone, local):
    midnight = local.replace(hour=0, minute=0, second=0)
    offsets = {(midnight + timedelta(minutes=15 * quarter)).replace(tzinfo=zone).utcoffset() for quarter in range(-8, 105)}
    return len(offsets) == 1


for line in sys.stdin:
    asked = json.loads(line)
    zone = ZoneInfo(asked["zone"])
    start = datetime.fromtimestamp(asked["after"], zone).replace(tzinfo=None)
    six = len(asked["cron"].split()) == 6
    times = croniter(asked["cron"], start, second_at_beginning=six)
    answer = []
    for _ in range(asked["count"]):
        local = times.get_next(datetime)
        answer.append([int(local.replace(tzinfo=zone).timestamp()), day_is_plain(zone, local)])
    print(json.dumps(answer))
