"""What `make bench` measures of the pages in Chromium: `measure.py LINK KIND …`, with a link of `talon gateway open`. It says that it is
ready, and answers each line `turn` with a JSON list of figures, as `tests/bench/src/turns.rs` reads them.

  paint             with a cold cache: until something of each page is painted
  typing MESSAGES   in a chat of so many messages, all of them drawn: from a key to its letter on the screen
  streaming ANSWERS PIECES CASE   memory after so many answers of so many pieces each
"""

import json
import os
import sys

from browser import chromium

KEYS = 100
# Between two keys, in milliseconds: of somebody who types fast.
BETWEEN = 30
# Patience of Playwright, in milliseconds: only a limit for hangs.
WAIT = 600_000
# The last word of every answer of the instant model (tests/bench/src/stock/model.rs).
LAST_WORD = "finally."

# Sends messages to a new session, one after the other, as the page itself does.
FILL = """async ([turns, text]) => {
  const { sessionToken } = await (await fetch("/api/session")).json();
  const headers = { "content-type": "application/json", "x-talon-session": sessionToken };
  let id = "new";
  for (let turn = 0; turn < turns; turn += 1) {
    const answer = await fetch(`/api/sessions/${encodeURIComponent(id)}/send`, { method: "POST", headers, body: JSON.stringify({ text }) });
    const json = await answer.json();
    if (!answer.ok) throw new Error(JSON.stringify(json));
    id = json.sessionId;
  }
  return id;
}"""

# From the time of each key until the frame with its letter is painted: a task after the frame's callbacks.
WATCH = """() => {
  window.typed = [];
  document.getElementById("message").addEventListener("keydown", ({ timeStamp }) => {
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => window.typed.push(performance.now() - timeStamp);
      port2.postMessage(0);
    });
  }, { capture: true });
}"""

PAINTS = """() => Object.fromEntries(performance.getEntriesByType("paint").map(({ name, startTime }) => [name, startTime]))"""


def figure(case, contender, metric, unit, value):
    return {"case": case, "contender": contender, "metric": metric, "unit": unit, "value": value}


def visit(browser, state):
    """A page without anything in its cache, of who is signed in."""
    page = browser.new_context(viewport={"width": 1280, "height": 800}, storage_state=state).new_page()
    page.set_default_timeout(WAIT)
    return page


def paint(browser, origin, state):
    def turn():
        told = []
        for name, path in (("Control UI", "/"), ("WebChat", "/chat")):
            page = visit(browser, state)
            page.goto(origin + path)
            page.wait_for_function("() => performance.getEntriesByName('first-contentful-paint').length > 0")
            paints = page.evaluate(PAINTS)
            for metric in ("first-paint", "first-contentful-paint"):
                told.append(figure("pages/first paint", name, metric.replace("-", " "), "ms", paints[metric]))
            page.context.close()
        return told

    return turn


def typing(browser, origin, state, messages):
    page = visit(browser, state)
    page.goto(f"{origin}/chat")
    page.wait_for_selector("#message")
    session = page.evaluate(FILL, [int(messages) // 2, "pieces=12, please"])
    page.goto(f"{origin}/chat#/s/{session}")
    page.reload()
    page.wait_for_selector(".answer")
    while page.locator(".center-row button").count():
        page.locator(".center-row button").first.click()
        page.wait_for_timeout(50)
    page.wait_for_function("(most) => document.querySelectorAll('.user').length + document.querySelectorAll('.answer').length === most", arg=int(messages))
    page.focus("#message")
    page.evaluate(WATCH)

    def turn():
        page.evaluate("() => { window.typed.length = 0; }")
        page.keyboard.type("a quick fox jumps over it " * (KEYS // 26 + 1), delay=BETWEEN)
        page.wait_for_function("(keys) => window.typed.length >= keys", arg=KEYS)
        times = sorted(page.evaluate("() => window.typed")[:KEYS])
        page.fill("#message", "")
        case = f"pages/typing, {int(messages):,} messages"
        return [figure(case, "WebChat", "p50", "ms", times[len(times) // 2]), figure(case, "WebChat", "slowest", "ms", times[-1])]

    return turn


def renderer_mib():
    """The resident memory of the largest renderer among our children: the page's."""
    parents, sizes = {}, {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/status", encoding="utf-8") as status:
                fields = dict(line.rstrip("\n").split(":\t", 1) for line in status if ":\t" in line)
            with open(f"/proc/{pid}/cmdline", "rb") as cmdline:
                is_renderer = b"--type=renderer" in cmdline.read()
        except OSError:
            continue
        parents[int(pid)] = int(fields["PPid"])
        if is_renderer and "VmRSS" in fields:
            sizes[int(pid)] = int(fields["VmRSS"].split()[0]) / 1024

    def is_ours(pid):
        while pid in parents and pid != os.getpid():
            pid = parents[pid]
        return pid == os.getpid()

    return max(size for pid, size in sizes.items() if is_ours(pid))


def streaming(browser, origin, state, answers, pieces, case):
    page = visit(browser, state)
    page.goto(f"{origin}/chat")
    page.wait_for_selector("#message")
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable")

    def heap_mib():
        devtools.send("HeapProfiler.collectGarbage")
        metrics = {metric["name"]: metric["value"] for metric in devtools.send("Performance.getMetrics")["metrics"]}
        return metrics["JSHeapUsedSize"] / (1 << 20)

    def turn():
        before = heap_mib()
        for answer in range(1, int(answers) + 1):
            page.fill("#message", f"pieces={pieces}")
            page.press("#message", "Control+Enter")
            page.wait_for_function(
                "([answers, word]) => { const all = document.querySelectorAll('.answer'); return all.length === answers && all[answers - 1].textContent.includes(word); }",
                arg=[answer, LAST_WORD])
        metrics = [("heap before", before), ("heap after", heap_mib()), ("process after", renderer_mib())]
        return [figure(f"pages/{case}", "WebChat", metric, "MiB", value) for metric, value in metrics]

    return turn


def main(link, kind, *words):
    origin = link.split("/open/")[0]
    with chromium() as browser:
        first = browser.new_context()
        page = first.new_page()
        page.goto(link)
        page.wait_for_selector("h1")
        state = first.storage_state()
        first.close()
        turn = {"paint": paint, "typing": typing, "streaming": streaming}[kind](browser, origin, state, *words)
        print(json.dumps({"ready": True}), flush=True)
        for line in sys.stdin:
            if line.strip() != "turn":
                break
            print(json.dumps(turn()), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
