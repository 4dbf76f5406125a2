"""A thousand hostile texts through every place that shows text of models, plugins and people: no script runs, no request leaves, nothing
of them becomes an element, and the page stays usable. `hostile.py [HOW_MANY]`; a failure prints the seed."""

import os
import random
import sys

import fixtures
from browser import chromium, new_page
from screenshots import CONTROL
from server import StandIn

PIECES = [
    "<script>window.hurt=1</script>", "<img src=x onerror=window.hurt=1>", "<svg onload=window.hurt=1>", "<svg><script>window.hurt=1</script></svg>", "<math><mi xlink:href='javascript:window.hurt=1'>x</mi></math>",
    "<iframe srcdoc='<script>parent.hurt=1</script>'></iframe>", "<a href='javascript:window.hurt=1'>x</a>", "[x](javascript:window.hurt=1)", "[x](data:text/html,<script>window.hurt=1</script>)", "[x](vbscript:x)", "[x](\u0001javascript:window.hurt=1)",
    "[x](JaVaScRiPt:window.hurt=1)", "![x](https://leak.example/p.png)", "![](//leak.example/p)", "<link rel=stylesheet href=https://leak.example/s.css>", "<style>@import 'https://leak.example/s.css'</style>", "<base href=https://leak.example/>",
    "<form action=https://leak.example><input autofocus onfocus=window.hurt=1></form>", "<meta http-equiv=refresh content='0;url=https://leak.example'>", "<object data=https://leak.example></object>", "{{constructor.constructor('window.hurt=1')()}}",
    "${window.hurt=1}", "\"><img src=x onerror=window.hurt=1>", "'-window.hurt=1-'", "]]><script>window.hurt=1</script>", "<!--<img src='--><img src=x onerror=window.hurt=1>'>", "__proto__", "constructor", "toString", "\u202etxt.exe\u202c", "\u2066\u2067\u2068\u2069",
    "\u200b\u200b\u200b", "\ufeff", "\U000e0041\U000e0042", "\x1b[31mred\x1b[0m", "\x1b]8;;https://leak.example\x07link\x1b]8;;\x07", "\x1b[2J\x1b[H", "\x00\x01\x02\x07\x08", "\r\n\r\n", "`" * 40, "*" * 200, "_" * 200, "[" * 300, "](" * 200, "> " * 60, "- " * 60,
    "| a | b |\n|---|---|\n| <b>x</b> | [y](javascript:z) |", "```html\n<script>window.hurt=1</script>\n", "# " + "h" * 300, "1. " * 50, "&lt;script&gt;&#x3c;script&#x3e;", "😀👩‍👩‍👧‍👦", "ا" * 50, "Z" + "\u0300" * 500, "http://user:pass@leak.example/<script>",
    "https://leak.example/" + "a" * 500, "a" * 3000, "\n" * 200, "~~" * 100, "**" * 100 + "x", "<" * 300, "mailto:x@leak.example?body=<script>", "-->", "*/", "\\" * 100, "\u2028\u2029", "%3Cscript%3E", "file:///etc/passwd", "//leak.example/x", "[a]: javascript:x\n[a]",
]

LEFTOVERS = """() => {
  const bad = [];
  for (const element of document.querySelectorAll("script:not([src^='/assets/']), iframe, object, embed, base, meta[http-equiv], style, math, form[action], [srcdoc], svg script")) bad.push(element.outerHTML.slice(0, 200));
  for (const element of document.querySelectorAll("*")) {
    for (const { name, value } of element.attributes) {
      if (/^on/i.test(name) || (["href", "src", "xlink:href", "action"].includes(name) && !/^(#|\\/|blob:|https?:|mailto:)/.test(value))) bad.push(`${name}=${value.slice(0, 100)}`);
      if (name === "src" && /^https?:/.test(value)) bad.push(`${name}=${value}`);
    }
  }
  for (const node of document.querySelectorAll("main, nav, .toast, dialog")) if (/[\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u202a-\\u202e\\u2066-\\u2069\\u{e0000}-\\u{e007f}]/u.test(node.textContent)) bad.push(`hidden characters in ${node.className || node.nodeName}`);
  return bad;
}"""


def main(many):
    seed = int(os.environ.get("TALON_TEST_SEED", random.randrange(1 << 32)))
    random_ = random.Random(seed)
    made = []

    def hostile():
        text = "".join(random_.choice(PIECES) for _ in range(random_.choice([1, 1, 2, 3, 6])))
        made.append(text)
        return text

    server = StandIn(hostile=hostile).start()
    server.ghosts = fixtures.ghosts()
    failures = []
    with chromium() as browser:
        page = new_page(browser)
        outside = []
        page.on("request", lambda request: outside.append(request.url) if not request.url.startswith((server.url, server.url.replace("http", "ws"), "blob:")) else None)
        page.on("dialog", lambda dialog: (outside.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.add_init_script("window.violations = []; addEventListener('securitypolicyviolation', (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));")

        def look(where):
            for problem, found in (("ran", page.evaluate("window.hurt ? ['a script'] : []")), ("policy", page.evaluate("window.violations")), ("left", page.evaluate(LEFTOVERS)), ("went out", list(outside)), ("troubles", list(page.troubles))):
                if found:
                    failures.append(f"{where}: {problem}: {found[:3]}")
            page.troubles.clear()

        rounds = 0
        while len(made) < many and not failures:
            rounds += 1
            for view in CONTROL:
                page.goto(f"{server.url}/#/{view}")
                page.wait_for_selector("main#main h1")
                page.wait_for_timeout(80)
                page.evaluate("for (const folded of document.querySelectorAll('main details')) folded.open = true")
                look(view)
            page.goto(f"{server.url}/chat#/s/sess_01J9Z0000")
            page.wait_for_selector(".item")
            for text in ("think and use tools", "approve", "ask", "ask with a form", "ghost", "raw:x"):
                page.goto(f"{server.url}/chat")
                page.wait_for_selector("#message")
                page.fill("#message", text)
                page.press("#message", "Control+Enter")
                page.wait_for_selector(".ask.pending" if text.startswith(("approve", "ask")) else ".answer")
                page.evaluate("for (const folded of document.querySelectorAll('main details')) folded.open = true")
                look(f"chat: {text}")
        # What is long: a line of a megabyte, ten thousand items, and what a parser could take for ever for.
        server.hostile = None
        for name, text in (("line", "x" * (1 << 20)), ("items", "\n".join(f"- item {at}" for at in range(10_000))), ("stars", "*a " * 100_000), ("brackets", "[" * 50_000), ("nested", "\n".join("> " * at + "q" for at in range(300))), ("ticks", "".join("`" * (at % 9 + 1) + "x" for at in range(50_000)))):
            server.record("sess_01J9Z0003", "agent.response", {"content": text, "whole": True})
            server.record("sess_01J9Z0003", "channel.message", {"channel": "web", "senderId": "x", "text": text, "clientId": name})
        page.goto(f"{server.url}/chat#/s/sess_01J9Z0003")
        page.wait_for_selector(".answer", timeout=60_000)
        page.fill("#message", "still usable")
        count = page.evaluate("document.querySelectorAll('*').length")
        if count > 60_000:
            failures.append(f"{count} elements for long texts")
        look("long texts")
    print(f"{len(made)} texts in {rounds} rounds, {count} elements for the long ones, seed {seed}")
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
