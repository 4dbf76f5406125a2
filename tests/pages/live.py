"""Both pages on a system that runs: `live.py LINK GATEWAY AGENT`, with a link of `talon gateway open --scope operate` and the process ids of
gateway and agent, which are killed in the middle."""

import os
import signal
import sys

from browser import chromium, new_page


def say(page, text):
    page.fill("#message", text)
    page.press("#message", "Control+Enter")


def main(link, gateway, agent):
    origin = link.split("/open/")[0]
    with chromium() as browser:
        page = new_page(browser)
        outside = []
        page.on("request", lambda request: outside.append(request.url) if not request.url.startswith((origin, "blob:")) else None)

        # The link signs in, and is used up.
        page.goto(link)
        page.wait_for_selector("h1 >> text=Overview")
        page.wait_for_selector(".tile >> text=/1 of 1/")

        # A plugin of the system: its state, actions and log, and a restart.
        page.goto(f"{origin}/#/plugins")
        page.click("tbody a >> text=liar")
        page.wait_for_selector("h2 >> text=Jail")
        page.click(".tabs >> text=Actions")
        page.wait_for_selector("summary >> text=echo")
        page.click(".tabs >> text=Log")
        page.wait_for_selector(".log, .state")
        page.click(".page-head >> text=Restart")
        page.wait_for_selector(".toast >> text=liar")
        for view in ("approvals", "sessions", "shadow", "shadow?tab=triggers", "shadow?tab=log", "extensions", "schedule", "notifications", "memory", "costs", "calls", "configuration", "audit", "doctor"):
            page.goto(f"{origin}/#/{view}")
            page.wait_for_selector("main#main h1")
            page.wait_for_selector("main#main .skeleton", state="detached")
            assert page.locator("text=This did not work").count() == 0, view

        # A turn: streamed, with markdown.
        page.goto(f"{origin}/chat")
        page.wait_for_selector("#message")
        say(page, "hello")
        page.wait_for_selector(".answer strong >> text=three")
        page.wait_for_selector(".under >> text=tokens")

        # A call that waits for a person, who allows it here.
        say(page, "call it")
        page.wait_for_selector(".ask.pending >> text=liar.echo")
        page.click(".ask.pending >> text=Allow once")
        page.wait_for_selector("text=It said so.")
        page.locator("details.tool-fold summary").last.click()
        page.wait_for_selector("details.tool-fold[open] >> text=hello from the page")

        # The agent is killed in the middle of an answer: it begins the answer anew, and what it had begun is not there twice.
        say(page, "slowly")
        page.wait_for_selector(".answer >> text=The first half")
        os.kill(agent, signal.SIGKILL)
        page.wait_for_selector(".answer >> text=and the second", timeout=90_000)
        assert page.locator(".answer", has_text="The first half").count() == 1

        # The gateway is killed; what is written meanwhile is sent when it is back, once.
        os.kill(gateway, signal.SIGKILL)
        say(page, "after the restart")
        page.wait_for_selector(".user >> text=after the restart")
        page.wait_for_function("() => [...document.querySelectorAll('.answer')].filter((answer) => answer.textContent.includes('three')).length === 2", timeout=90_000)
        page.wait_for_selector(".bar-notice", state="detached", timeout=60_000)
        assert page.locator(".user").count() == 4, page.locator(".user").all_inner_texts()

        # What happened is there after a reload, and in the Control UI.
        page.reload()
        page.wait_for_function("() => document.querySelectorAll('.user').length === 4 && document.querySelectorAll('.answer').length >= 4")
        page.click("[aria-label='Show in Control']")
        page.wait_for_selector(".transcript >> text=after the restart")
        page.go_back()
        page.wait_for_selector("#message")
        page.click("[aria-label='Delete the conversation']")
        page.click("dialog .danger")
        page.wait_for_selector("text=What can I do for you?")
        assert not outside, outside
        assert not page.troubles, page.troubles
    print("ok")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
