"""Screenshots of every view at three widths and in both themes, against the stand-in: `screenshots.py DIRECTORY [VIEW …]`. Those of the
documentation: `screenshots.py --docs docs/images`."""

import base64
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


DOCS = {"control-overview": ("overview", "light", 11_000), "control-shadow": ("shadow", "dark", 400), "control-session": ("sessions/sess_01J9Z0001", "light", 400), "control-call": ("calls/call_1", "light", 400)}
# Chromium writes WebP through a canvas alone; PNGs of the same pages are three times as large.
TO_WEBP = """async (png) => {
  const picture = new Image();
  picture.src = `data:image/png;base64,${png}`;
  await picture.decode();
  const canvas = new OffscreenCanvas(picture.width, picture.height);
  canvas.getContext("2d").drawImage(picture, 0, 0);
  const bytes = new Uint8Array(await (await canvas.convertToBlob({ type: "image/webp", quality: 0.86 })).arrayBuffer());
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}"""


def docs(directory):
    """The pictures of README and docs, as WebP."""
    out = pathlib.Path(directory)
    server = StandIn().start()
    with chromium() as browser:
        blank = browser.new_page()

        def keep(page, name):
            png = base64.b64encode(page.screenshot()).decode()
            (out / f"{name}.webp").write_bytes(base64.b64decode(blank.evaluate(TO_WEBP, png)))

        for name, (view, theme, wait) in DOCS.items():
            server.ghosts = fixtures.ghosts()
            page = new_page(browser, 1280, 800, theme)
            page.goto(f"{server.url}/#/{view}")
            page.wait_for_selector("main#main h1")
            page.wait_for_timeout(wait)
            keep(page, name)
            page.context.close()
        server.ghosts = []
        page = new_page(browser, 1280, 800)
        page.goto(f"{server.url}/chat")
        page.wait_for_selector("#message")
        for text, shown in (("think about the build and use tools", ".under >> text=tokens"), ("approve this", ".ask.pending")):
            page.fill("#message", text)
            page.keyboard.press("Control+Enter")
            page.wait_for_selector(shown)
        page.wait_for_timeout(400)
        keep(page, "chat")


if __name__ == "__main__":
    if sys.argv[1] == "--docs":
        docs(sys.argv[2])
    else:
        main(sys.argv[1], sys.argv[2:])
