"""Screenshots of every view at three widths and in both themes, against the stand-in: `screenshots.py DIRECTORY [VIEW …]`."""

import pathlib
import sys

import fixtures
from browser import chromium, new_page
from server import StandIn

WIDTHS = {"360": (360, 780), "1280": (1280, 800), "2560": (2560, 1300)}
CONTROL = ["overview", "approvals", "calls", "calls/call_1", "sessions", "sessions/sess_01J9Z0001", "shadow", "shadow?tab=decided", "shadow?tab=triggers", "shadow?tab=log", "shadow/gh_1", "plugins", "plugins/code-search", "plugins/code-search?tab=actions", "plugins/code-search?tab=log", "plugins/shell", "extensions", "schedule", "notifications", "memory", "costs", "configuration", "audit", "doctor"]


def main(directory, only, widths=WIDTHS):
    out = pathlib.Path(directory)
    out.mkdir(parents=True, exist_ok=True)
    server = StandIn().start()
    server.ghosts = fixtures.ghosts()
    signed_out = StandIn(scopes=None).start()
    nothing = StandIn(empty=True, further=False).start()
    with chromium() as browser:
        for theme in ("light", "dark"):
            for name, (width, height) in WIDTHS.items():
                page = new_page(browser, width, height, theme)

                def shot(label, wait=350):
                    page.wait_for_timeout(wait)
                    page.screenshot(path=out / f"{label.replace('/', '-').replace('?', '-').replace('=', '-')}-{name}-{theme}.png")

                for view in CONTROL:
                    if only and view not in only:
                        continue
                    page.goto(f"{server.url}/#/{view}")
                    page.wait_for_selector("main#main h1")
                    shot(view, 11_000 if view == "overview" and name == "1280" else 400)
                if not only or "chat" in only:
                    server.ghosts = []
                    page.goto(f"{server.url}/chat")
                    page.wait_for_selector("#message")
                    shot("chat-new")
                    for number, text in enumerate(["think about the build and use tools", "approve this"]):
                        page.fill("#message", text)
                        page.keyboard.press("Control+Enter")
                        page.wait_for_selector(".under >> text=tokens" if number == 0 else ".ask.pending")
                        shot(f"chat-{number}")
                    page.fill("#message", "a draft")
                server.ghosts = fixtures.ghosts()
                if not only or "states" in only:
                    page.goto(f"{signed_out.url}/")
                    page.wait_for_selector("#link")
                    shot("signin")
                    page.goto(f"{nothing.url}/#/overview")
                    page.wait_for_selector(".all-well")
                    shot("empty-overview")
                    page.goto(f"{nothing.url}/#/calls")
                    page.wait_for_selector(".state")
                    shot("empty-calls")
                if page.troubles:
                    print("\n".join(page.troubles))
                page.context.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
