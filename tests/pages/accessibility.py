"""axe-core on every view, in both themes and at a width of 360: `accessibility.py PATH_OF_AXE`. Prints each violation; exits
with 1 if there is any."""

import pathlib
import sys

from browser import chromium, new_page
from screenshots import CONTROL
from server import StandIn

RUN = """async () => {
  const { violations } = await axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] });
  return violations.map(({ id, help, nodes }) => `${id}: ${help}\\n` + nodes.slice(0, 4).map(({ html, failureSummary }) => `    ${html.slice(0, 200)}\\n    ${failureSummary.replaceAll("\\n", " ")}`).join("\\n"));
}"""


OPEN = "for (const folded of document.querySelectorAll('main details')) folded.open = true"


def main(axe):
    found = []
    source = pathlib.Path(axe).read_text()
    server, empty, out, reader = StandIn().start(), StandIn(empty=True, further=False).start(), StandIn(scopes=None).start(), StandIn(scopes=("approve",)).start()
    with chromium() as browser:
        # Colours are the theme's, and places the width's: together they are not looked at.
        for theme, width in (("light", 1280), ("dark", 1280), ("light", 360)):
            page = new_page(browser, width, 800, theme)

            def check(name):
                page.wait_for_timeout(150)
                # axe is no part of the page: it comes in beside its policy.
                page.evaluate(source)
                for violation in page.evaluate(RUN):
                        found.append(f"{name} {theme} {width}: {violation}")
                        print(found[-1], flush=True)

            for view in CONTROL:
                page.goto(f"{server.url}/#/{view}")
                page.wait_for_selector("main#main h1")
                page.evaluate(OPEN)
                check(view)
            for view in ("overview", "calls", "plugins", "schedule", "memory", "costs"):
                page.goto(f"{empty.url}/#/{view}")
                page.wait_for_selector("main#main h1")
                check(f"empty {view}")
            page.keyboard.press("?")
            page.wait_for_selector("dialog[open]")
            check("shortcuts")
            page.goto(f"{out.url}/")
            page.wait_for_selector("#link")
            check("sign in")
            page.goto(f"{reader.url}/")
            page.wait_for_selector(".state")
            check("forbidden")
            page.goto(f"{server.url}/chat")
            page.wait_for_selector("#message")
            check("new conversation")
            for text, shown in (("think about the build and use tools", ".under >> text=tokens"), ("approve this", ".ask.pending"), ("ask with a form", ".ask.pending form select"), ("ghost", ".ghost")):
                page.goto(f"{server.url}/chat")
                page.wait_for_selector("#message")
                page.fill("#message", text)
                page.press("#message", "Control+Enter")
                page.wait_for_selector(shown)
                page.evaluate(OPEN)
                check(f"chat: {text}")
            found.extend(page.troubles)
            page.context.close()
    print(f"{len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
