#!/usr/bin/env python3
"""Draws the dashboard over a supervisor under load, for docs/metrics.md.

    docs/images/dashboard-shot.py [--seconds 90] [--out docs/images/dashboard.svg]

It runs `talon serve` with a few plugins (from target/debug), calls them in every way that the panels are about, and has
Debian's prometheus scrape it through a small proxy on loopback. The queries are read from deploy/monitoring/dashboard.json and
answered by Prometheus' own API; nothing is made up. Grafana is not in Debian, so the drawing is this script's own.
"""

import argparse
import json
import math
import os
import random
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parent.parent.parent
BIN = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug"
COLOURS = ["#7eb26d", "#eab839", "#6ed0e0", "#ef843c", "#e24d42", "#1f78c1", "#ba43a9", "#705da0", "#508642", "#cca300"]
COLUMN, ROW, WIDTH = 52, 26, 24
MAX_LINES = 8

CONFIG = """
runtime_dir: {dir}/run
state:
  data_dir: {dir}/data
guard:
  breaker: {{ failures: 5, window: 60s, open_for: 10s }}
  quarantine: {{ marks: 400, window: 1h }}
log: {{ lines_per_second: 20, burst_lines: 100 }}
{sandbox}
plugins:
  tools:
    plugin_dir: {dir}/plugins
    plugins:
      hello: {{ command: {bin}/hello, instances: 2 }}
      notes: {{ command: {bin}/notes }}
      web: {{ command: {bin}/misbehave, concurrency: 2, queue: 2 }}
      mail: {{ command: {bin}/misbehave, max_restarts: 1000, backoff_initial: 100ms, backoff_max: 1s }}
      broken: {{ command: {bin}/misbehave, args: [--lie, exit-at-once], max_restarts: 2 }}
"""

# Plugin, action and arguments, how often a second, and how many callers at once.
CALLS = [
    ("hello.greet", ["name=Ada"], 6, 1),
    ("web.slow", ["ms=40"], 4, 3),
    ("web.echo", ["text=A page about tools"], 4, 1),
    ("web.hostile", [], 0.5, 1),
    ("web.big", ["bytes=150000"], 0.5, 1),
    ("mail.echo", ["text=Dear Ada"], 3, 1),
    ("mail.error", ["text=no such mailbox"], 0.7, 1),
    ("mail.exit", [], 0.08, 1),
    ("mail.log", ["text=one more line"], 2, 1),
    ("mail.state", ["op=set", "key=k", "bytes=300000"], 0.5, 1),
    ("nobody.home", [], 0.2, 1),
]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def proxy(port, path, over):
    """Prometheus speaks TCP alone: what socat would do, for one client."""
    server = socket.create_server(("127.0.0.1", port))
    server.settimeout(0.5)
    while not over.is_set():
        try:
            client, _ = server.accept()
        except TimeoutError:
            continue
        with client, socket.socket(socket.AF_UNIX) as admin:
            try:
                client.settimeout(10)
                asked = b""
                while b"\r\n\r\n" not in asked and len(asked) < 8192:
                    asked += client.recv(8192)
                admin.connect(path)
                admin.sendall(asked)
                while piece := admin.recv(65536):
                    client.sendall(piece)
            except OSError:
                continue


def load(host, over):
    def caller(action, arguments, rate):
        while not over.wait(random.expovariate(rate)):
            subprocess.run([BIN / "talon", "--socket", host, "call", action, *arguments],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    threads = [threading.Thread(target=caller, args=(action, arguments, rate))
               for action, arguments, rate, at_once in CALLS for _ in range(at_once)]
    for thread in threads:
        thread.start()
    return threads


def query(port, expression, start, end):
    text = expression.replace("$__rate_interval", "15s").replace("$plugin", ".*")
    about = urllib.parse.urlencode({"query": text, "start": start, "end": end, "step": 1})
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query_range?{about}") as answer:
        return json.load(answer)["data"]["result"]


def legend(pattern, labels):
    for name, value in labels.items():
        pattern = pattern.replace("{{" + name + "}}", value)
    return pattern or ", ".join(f"{n}={v}" for n, v in labels.items() if n not in ("instance", "job", "__name__")) or "value"


def shown(value, unit):
    if math.isnan(value):
        return "–"
    if unit in ("bytes", "Bps"):
        for word in ("B", "KiB", "MiB", "GiB"):
            if abs(value) < 1024 or word == "GiB":
                return f"{value:.3g} {word}" + ("/s" if unit == "Bps" else "")
            value /= 1024
    if unit == "percentunit":
        return f"{value * 100:.3g} %"
    if unit == "s":
        factor, word = next(((f, w) for f, w in ((1, "s"), (1e3, "ms")) if abs(value) * f >= 1), (1e6, "µs"))
        return "0 s" if value == 0 else f"{value * factor:.3g} {word}"
    return f"{value:.3g}" + ("/s" if unit in ("reqps", "ops") else "")


def panel(one, series, start, end):
    place, unit = one["gridPos"], one["fieldConfig"]["defaults"]["unit"]
    x, y, w, h = place["x"] * COLUMN, place["y"] * ROW, place["w"] * COLUMN - 6, place["h"] * ROW - 6
    out = [f'<g transform="translate({x + 3},{y + 3})"><rect width="{w}" height="{h}" rx="3" fill="#1f2126"/>',
           f'<text x="8" y="17" class="t">{escape(one["title"])}</text>']
    drawn = [(name, [(float(at), float(value)) for at, value in values]) for name, values in series]
    drawn = [(name, [p for p in points if not math.isnan(p[1])]) for name, points in drawn]
    drawn = sorted((d for d in drawn if d[1]), key=lambda d: -max(v for _, v in d[1]))
    if one["type"] == "stat":
        text = shown(drawn[0][1][-1][1], unit) if drawn else "0"
        if drawn and drawn[0][0] != "value":
            text = drawn[0][0]
        out.append(f'<text x="{w / 2}" y="{h / 2 + 16}" class="s" style="font-size:{min(26, int(w * 1.6 / len(text)))}px" text-anchor="middle">{escape(text)}</text></g>')
        return "".join(out)
    left, top, right, bottom = 58, 28, w - 10, h - 16 * min(2, math.ceil(len(drawn[:MAX_LINES]) / 4)) - 12
    most = max((value for _, points in drawn for _, value in points), default=0) or 1
    for part in range(5):
        at = bottom - (bottom - top) * part / 4
        out.append(f'<path d="M{left} {at:.1f}H{right}" stroke="#34373e"/>'
                   f'<text x="{left - 6}" y="{at + 3:.1f}" class="a" text-anchor="end">{shown(most * part / 4, unit)}</text>')
    for number, (name, points) in enumerate(drawn[:MAX_LINES]):
        colour = COLOURS[number % len(COLOURS)]
        spots = [(left + (right - left) * (at - start) / (end - start), bottom - (bottom - top) * max(value, 0) / most)
                 for at, value in points]
        path = "".join(f"{'L' if i else 'M'}{px:.1f} {py:.1f}" for i, (px, py) in enumerate(spots))
        out.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.4"/>')
        lx, ly = left + (number % 4) * (w - left) / 4, bottom + 16 + 15 * (number // 4)
        out.append(f'<rect x="{lx:.0f}" y="{ly - 7:.0f}" width="9" height="3" fill="{colour}"/>'
                   f'<text x="{lx + 13:.0f}" y="{ly:.0f}" class="a">{escape(name[:int((w - left) / 4 / 6)])}</text>')
    if not drawn:
        out.append(f'<text x="{w / 2}" y="{h / 2}" class="a" text-anchor="middle">nothing</text>')
    out.append("</g>")
    return "".join(out)


def draw(dashboard, port, start, end):
    out, height = [], 0
    for one in dashboard["panels"]:
        place = one["gridPos"]
        height = max(height, (place["y"] + place["h"]) * ROW)
        if one["type"] == "row":
            out.append(f'<text x="6" y="{place["y"] * ROW + 18}" class="r">{escape(one["title"])}</text>')
            continue
        series = [(legend(target.get("legendFormat", ""), found["metric"]), found["values"])
                  for target in one["targets"] for found in query(port, target["expr"], start, end)]
        out.append(panel(one, series, start, end))
    style = ("text{font-family:sans-serif;fill:#d8d9da}.t{font-size:12px}.s{font-size:26px;fill:#7eb26d}"
             ".a{font-size:10px;fill:#9fa3a9}.r{font-size:14px;font-weight:bold}")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH * COLUMN} {height}" width="{WIDTH * COLUMN}">'
            f"<style>{style}</style><rect width='100%' height='100%' fill='#111217'/>" + "\n".join(out) + "</svg>\n")


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=int, default=90)
    options.add_argument("--out", type=Path, default=ROOT / "docs/images/dashboard.svg")
    options = options.parse_args()
    if not shutil.which("prometheus"):
        raise SystemExit("prometheus is not installed: apt-get install prometheus")
    dashboard = json.loads((ROOT / "deploy/monitoring/dashboard.json").read_text())
    over, running, threads = threading.Event(), [], []
    with tempfile.TemporaryDirectory(prefix="talon-", dir="/tmp") as name:
        os.chmod(name, 0o755)
        dir = Path(name)
        (dir / "plugins").mkdir()
        sandbox = "sandbox: { uid_range: 88000-88019 }" if os.geteuid() == 0 else ""
        (dir / "talon.yaml").write_text(CONFIG.format(dir=dir, bin=BIN, sandbox=sandbox))
        port, web = free_port(), free_port()
        (dir / "prometheus.yml").write_text(json.dumps({
            "global": {"scrape_interval": "1s", "evaluation_interval": "5s"},
            "rule_files": [str(ROOT / "deploy/monitoring/alerts.yml")],
            "scrape_configs": [{"job_name": "talon", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}],
        }))
        try:
            running.append(subprocess.Popen([BIN / "talon", "serve", "--config", dir / "talon.yaml"],
                                            stderr=(dir / "log").open("w")))
            host, admin = dir / "run/host.sock", dir / "run/admin.sock"
            until = time.time() + 30
            while not admin.exists() and time.time() < until:
                time.sleep(0.1)
            threads.append(threading.Thread(target=proxy, args=(port, str(admin), over)))
            threads[0].start()
            running.append(subprocess.Popen(
                ["prometheus", f"--config.file={dir}/prometheus.yml", f"--storage.tsdb.path={dir}/tsdb",
                 f"--web.listen-address=127.0.0.1:{web}", "--log.level=error"]))
            threads += load(host, over)
            start = time.time() + 5
            time.sleep(options.seconds)
            end = time.time()
            picture = draw(dashboard, web, start, end)
            with urllib.request.urlopen(f"http://127.0.0.1:{web}/api/v1/alerts") as answer:
                alerts = json.load(answer)["data"]["alerts"]
            print("alerts:", ", ".join(sorted({f'{a["labels"]["alertname"]} ({a["state"]})' for a in alerts})))
        finally:
            over.set()
            for process in reversed(running):
                process.terminate()
            for thread in threads:
                thread.join()
            for process in running:
                process.wait(timeout=30)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(picture)
    print(f"{options.out}: {len(picture) >> 10} KiB")


if __name__ == "__main__":
    main()
