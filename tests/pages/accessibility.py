"""axe-core on every view, in both themes and at a width of 360: `accessibility.py PATH_OF_AXE`. Prints each violation; exits
with 1 if there is any."""

import pathlib
import sys

import fixtures
from browser import chromium, new_page
from screenshots import CONTROL
from server import StandIn

RUN = """async (colours) => {
  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
  const ofColour = ["color-contrast", "link-in-text-block"];
  const rules = Object.fromEntries(ofColour.map((rule) => [rule, { enabled: false }]));
  const { violations } = await axe.run(document, colours === "alone" ? { runOnly: { type: "rule", values: ofColour } } : { runOnly: tags, ...(colours === "without" ? { rules } : {}) });
  return violations.map(({ id, help, nodes }) => `${id}: ${help}\\n` + nodes.slice(0, 4).map(({ html, failureSummary }) => `    ${html.slice(0, 200)}\\n    ${failureSummary.replaceAll("\\n", " ")}`).join("\\n"));
}"""


OPEN = "for (const folded of document.querySelectorAll('main details')) folded.open = true"


# Counts what the page asks the gateway for and has not read yet.
COUNT = """
  window.asked = 0;
  const count = async (answer) => {
    window.asked += 1;
    try { return await answer(); } finally { window.asked -= 1; }
  };
  const inner = window.fetch;
  window.fetch = (...request) => count(async () => {
    const answer = await inner(...request);
    const json = answer.json.bind(answer);
    answer.json = () => count(json);
    return answer;
  });
"""

# Whether a view is drawn, and not the one before: by the navigation, the link back of what is one of a list, and the tabs.
DRAWN = """(view) => {
  const [path, query] = view.split("?");
  const at = (selector) => document.querySelector(selector)?.getAttribute("href");
  const tab = at("main#main nav.tabs [aria-current=page]");
  return document.querySelector("main#main h1") && at("#navigation [aria-current=page]") === `#/${path.split("/")[0]}`
    && Boolean(at("main#main .page-head a.up")) === path.includes("/") && (tab === undefined ? !query : tab === `#/${view}`);
}"""

# Whether nothing is about to change: for three frames nothing is asked for, nothing loads and nothing moves.
CALM = """() => {
  const moves = ({ playState, effect }) => playState === "running" && effect.getComputedTiming().endTime < Infinity;
  const isCalm = window.asked === 0 && !document.querySelector("main#main .skeleton") && !document.getAnimations().some(moves);
  window.calm = isCalm ? window.calm + 1 : 0;
  return window.calm >= 3;
}"""


def opened(page, view):
    """The view stands there, with what it read."""
    page.wait_for_function(DRAWN, arg=view)
    calm(page)


def calm(page):
    page.evaluate("window.calm = 0")
    page.wait_for_function(CALM)


def main(axe):
    found = []
    source = pathlib.Path(axe).read_text()
    server, empty, out, reader = StandIn().start(), StandIn(empty=True, further=False).start(), StandIn(scopes=None).start(), StandIn(scopes=("approve",)).start()
    server.ghosts = fixtures.ghosts()
    with chromium() as browser:
        # Colours are the theme's, and places the width's: of the second theme and the second width only what differs there is looked at.
        for theme, width, colours in (("light", 1280, "with"), ("dark", 1280, "alone"), ("light", 360, "without")):
            page = new_page(browser, width, 800, theme)
            page.add_init_script(COUNT)

            def check(name):
                calm(page)
                # axe is no part of the page: it comes in beside its policy.
                if not page.evaluate("'axe' in window"):
                    page.evaluate(source)
                for violation in page.evaluate(RUN, colours):
                        found.append(f"{name} {theme} {width}: {violation}")
                        print(found[-1], flush=True)

            for view in CONTROL:
                page.goto(f"{server.url}/#/{view}")
                opened(page, view)
                page.evaluate(OPEN)
                check(view)
            for view in ("overview", "calls", "shadow", "plugins", "schedule", "memory", "costs"):
                page.goto(f"{empty.url}/#/{view}")
                opened(page, view)
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
