"""What both pages do, against the stand-in: each function once, a restart in the middle of a stream, two tabs, the keyboard alone.
`functions.py [--chat|--control|NAME …]`; prints a line for each, and exits with 1 if one fails."""

import datetime
import json
import os
import sys
import traceback
import zoneinfo

import fixtures
from browser import chromium, new_page
from server import StandIn

TESTS = []


def test(function):
    TESTS.append(function)
    return function


def say(page, text):
    page.fill("#message", text)
    page.press("#message", "Control+Enter")


def chat(browser, server, session=None, **more):
    page = new_page(browser, **more)
    page.goto(f"{server.url}/chat" + (f"#/s/{session}" if session else ""))
    page.wait_for_selector("#message")
    return page


def control(browser, server, view="overview", **more):
    page = new_page(browser, **more)
    page.goto(f"{server.url}/#/{view}")
    page.wait_for_selector("main#main h1")
    return page


# ---- WebChat


@test
def an_answer_streams_as_markdown_and_code_is_copied(browser):
    server = StandIn().start()
    page = chat(browser, server)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server.url)
    say(page, "think about the build and use tools")
    page.wait_for_selector(".caret", state="attached")
    page.wait_for_selector(".under >> text=9,530 tokens")
    page.wait_for_selector(".context >> text=28 % of context")
    page.wait_for_selector(".chat-head .cost >> text=$")
    assert page.locator(".prose table td").nth(0).inner_text() == "ring-compat"
    link = page.locator(".prose a").first
    assert (link.get_attribute("href"), link.get_attribute("rel")) == ("https://example.org/ring-compat/0.9", "noopener noreferrer nofollow")
    assert "example.org" in link.inner_text()
    page.locator(".answer .code button").click()
    page.wait_for_selector(".toast >> text=Copied")
    assert "ring-compat = " in page.evaluate("navigator.clipboard.readText()")
    return page


@test
def tools_thoughts_and_subagents_are_folded_with_what_they_said(browser):
    page = chat(browser, StandIn().start())
    say(page, "think and use tools")
    page.wait_for_selector(".under >> text=tokens")
    folds = page.locator("details.fold")
    assert folds.count() == 3 and page.locator("details.fold[open]").count() == 0
    folds.nth(0).locator("summary").click()
    page.wait_for_selector("text=I look at the runs first")
    folds.nth(1).locator("summary").click()
    page.wait_for_selector("text=src/turn.rs:41")
    page.wait_for_selector("text=reading part 4 of 4")
    folds.nth(2).locator("summary").click()
    page.wait_for_selector("text=One dependency was updated")
    return page


@test
def a_call_is_approved_and_another_denied_where_it_is_asked(browser):
    server = StandIn().start()
    page = chat(browser, server)
    say(page, "approve this")
    page.wait_for_selector(".ask.pending >> text=git push --force-with-lease")
    page.click(".ask.pending >> text=Allow once")
    page.wait_for_selector(".ask >> text=approved")
    page.wait_for_selector("details.fold >> text=shell.run")
    page.wait_for_selector("text=You said: approve this")
    say(page, "approve that")
    page.wait_for_selector(".ask.pending")
    page.fill(".ask.pending [name=reason]", "not on a Friday")
    page.press(".ask.pending [name=reason]", "Enter")
    page.wait_for_selector(".ask >> text=denied")
    assert json.loads(bodies(server, "/api/approvals/")[0])["digest"] != ""
    return page


def bodies(server, path):
    return [body for target, body in server.bodies if target.startswith(path)]


@test
def questions_are_answered_by_button_and_by_form(browser):
    server = StandIn().start()
    page = chat(browser, server)
    say(page, "ask me")
    page.click(".ask.pending >> text=The one of June")
    page.wait_for_selector(".ask >> text=answered")
    page.wait_for_selector("text=You said: ask me")
    say(page, "ask me with a form")
    page.wait_for_selector(".ask.pending select")
    page.click(".ask.pending >> text=Answer")
    page.wait_for_selector(".ask.pending >> text=This is needed.")
    page.select_option(".ask.pending select", "June")
    page.fill(".ask.pending [inputmode=decimal]", "40")
    page.wait_for_selector(".ask.pending >> text=between 1 and 9")
    page.fill(".ask.pending [inputmode=decimal]", "2")
    page.locator(".ask.pending button[type=submit]").click()
    page.wait_for_selector("text=You said: ask me with a form")
    assert json.loads(json.loads(bodies(server, "/api/approvals/")[-1])["answer"]) == {"invoice": "June", "copies": 2}
    return page


@test
def a_restart_in_the_middle_of_a_stream_loses_nothing(browser):
    server = StandIn().start()
    page = chat(browser, server)
    say(page, "long 40")
    page.wait_for_selector(".answer >> text=One sentence")
    server.stop()
    page.wait_for_selector(".bar-notice")
    page.fill("#message", "written while it was away")
    page.press("#message", "Control+Enter")
    page.wait_for_selector(".user >> text=waits to be sent")
    page.fill("#message", "a draft")
    server.again()
    page.click(".bar-notice button") if page.locator(".bar-notice button").count() else None
    page.wait_for_selector(".bar-notice", state="detached", timeout=60_000)
    page.wait_for_selector("text=You said: written while it was away", timeout=60_000)
    page.wait_for_selector(".caret", state="detached", timeout=60_000)
    answers = page.locator(".answer .prose").all_inner_texts()
    assert [answers[0].count("One sentence"), len(answers)] == [40, 2], answers
    assert page.input_value("#message") == "a draft"
    assert [kind for kind in kinds(server) if kind == "channel.message"] == ["channel.message"] * 2
    return page


def kinds(server):
    return [event["type"] for session, events in server.events.items() if session.startswith("sess_new") for event in events]


@test
def a_message_sent_twice_is_one_turn_and_a_draft_outlives_the_page(browser):
    server = StandIn(silent=True).start()
    page = chat(browser, server, session="sess_01J9Z0003")
    say(page, "only once")
    page.wait_for_selector(".user >> text=sending")
    page.fill("#message", "half a tho")
    server.silent = False
    page.reload()
    page.wait_for_selector("text=You said: only once")
    assert page.input_value("#message") == "half a tho"
    assert server.received.count("only once") == 2 and page.locator(".user").count() == 1
    assert page.evaluate("Object.keys(localStorage).filter((key) => key.includes('outbox'))") == []
    return page


@test
def two_tabs_show_the_same_and_send_once(browser):
    server = StandIn().start()
    first = chat(browser, server, session="sess_01J9Z0003")
    second = first.context.new_page()
    second.goto(f"{server.url}/chat#/s/sess_01J9Z0003")
    second.wait_for_selector("#message")
    say(first, "from the first tab")
    # Not in the region for screen readers, which is told before it is drawn.
    second.wait_for_selector(".answer >> text=You said: from the first tab")
    say(second, "and from the second")
    for page in (first, second):
        page.wait_for_selector(".answer >> text=You said: and from the second")
        assert page.locator(".user").count() == 2
    assert server.received == ["from the first tab", "and from the second"]
    return first


@test
def what_happens_while_a_conversation_is_read_stands_at_its_end(browser):
    server = StandIn().start()
    server.early = True
    page = chat(browser, server, session="sess_01J9Z0000")
    page.wait_for_selector(".notice >> text=said meanwhile")
    page.wait_for_selector(".answer >> text=The build fails because")
    kinds = page.locator(".item").evaluate_all("(items) => items.map((item) => item.classList[1])")
    assert kinds == ["user", "answer", "tool", "answer", "notice"], kinds
    return page


SHUFFLE = """async () => {
  const { apply, newTranscript, settle } = await import("/assets/dev/chat/transcript.js");
  let state = 12345;
  const random = (below) => ((state = (state * 1103515245 + 12345) % 2 ** 31), state % below);
  const shown = (transcript) => JSON.stringify(transcript.items.map(({ version, key, ...item }) => item));
  for (let round = 0; round < 300; round += 1) {
    const events = [];
    const add = (type, payload) => events.push({ id: `e${events.length}`, type, timestamp: events.length + 1, sequence: (events.at(-1)?.sequence ?? 0) + 1 + random(5), payload: { sessionId: "s", ...payload } });
    for (let turn = 0; turn <= random(5); turn += 1) {
      add("channel.message", { text: `m${turn}`, clientId: `c${turn}`, senderId: "x", channel: "web" });
      for (let step = 0; step <= random(4); step += 1) {
        if (random(2)) add("agent.thought", { content: `t${step}` });
        if (random(2)) add("agent.response", { content: `a${turn}.${step}`, whole: true });
        add("tool.call", { id: `${turn}.${step}`, tool: "p.a", args: {} });
        if (random(2)) add("confirmation.request", { id: `${turn}.${step}`, tool: "p.a", args: {}, digest: "d", expiresAt: 9e15 });
        if (random(2)) add("confirmation.decided", { id: `${turn}.${step}`, state: "approved" });
        add("tool.result", { id: `${turn}.${step}`, tool: "p.a", success: true, output: "o", metadata: { executionTime: 1, truncated: false } });
      }
      add("agent.response", { content: `a${turn}`, whole: true });
      add("agent.response.end", { usage: { promptTokens: 1, completionTokens: 1, totalTokens: 2 }, providerId: "p", model: "m", iteration: 1 });
    }
    const whole = newTranscript("s");
    for (const event of events) apply(whole, event);
    const mixed = newTranscript("s");
    // The end of it first, as if it were live; then all of it, some of it twice.
    const from = random(events.length);
    for (const event of [...events.slice(from), ...events, ...events.slice(random(events.length))]) apply(mixed, event);
    settle(mixed);
    if (shown(whole) !== shown(mixed)) return [shown(whole), shown(mixed)];
  }
  return null;
}"""


@test
def events_that_come_twice_or_late_make_the_same_transcript(browser):
    page = chat(browser, StandIn().start())
    assert page.evaluate(SHUFFLE) is None, page.evaluate(SHUFFLE)
    return page


@test
def an_agent_without_events_is_read_by_messages(browser):
    server = StandIn(follows=False).start()
    page = chat(browser, server, session="sess_01J9Z0000")
    page.wait_for_selector(".answer >> text=The build fails because")
    page.wait_for_selector("details.fold >> text=github.list_runs")
    return page


@test
def a_turn_is_stopped_and_another_try_asks_again(browser):
    server = StandIn().start()
    page = chat(browser, server, session="sess_01J9Z0003")
    say(page, "long 400")
    page.wait_for_selector(".answer >> text=One sentence")
    page.click("text=Stop")
    page.wait_for_selector(".notice >> text=the turn was ended")
    say(page, "hello")
    page.wait_for_selector("text=You said: hello")
    page.wait_for_selector("[aria-label='Ask again']")
    with page.expect_request("**/undo"):
        page.click("[aria-label='Ask again']")
    return page


@test
def sessions_are_found_opened_configured_saved_and_deleted(browser):
    server = StandIn().start()
    page = chat(browser, server)
    page.fill("#search", "nightly")
    page.wait_for_function("() => document.querySelectorAll('.side-list li').length === 1")
    page.click(".side-list a")
    page.wait_for_selector(".answer >> text=The build fails because")
    for field, value in (("#model", "smart"), ("#thinking", "high")):
        with page.expect_response(lambda response: response.request.method == "PATCH"):
            page.select_option(field, value)
    assert [json.loads(body) for body in bodies(server, "/api/sessions/sess_01J9Z0000") if body] == [{"model": "smart"}, {"thinkingLevel": "high"}]
    page.click("[aria-label='Save the conversation']")
    with page.expect_download() as download:
        page.click("dialog >> text=Markdown")
    saved = open(download.value.path()).read()
    assert "## You" in saved and "github.list_runs" in saved and "ring-compat" in saved
    with page.expect_download() as download:
        page.click("dialog >> text=JSON")
    saved = json.load(open(download.value.path()))
    assert saved["messages"][1]["toolCalls"][0]["tool"] == "github.list_runs"
    page.keyboard.press("Escape")
    page.click("[aria-label='Delete the conversation']")
    page.click("dialog .danger")
    page.wait_for_selector("text=What can I do for you?")
    assert "sess_01J9Z0000" not in server.sessions
    return page


@test
def files_are_attached_by_button_and_paste(browser):
    server = StandIn().start()
    page = chat(browser, server, session="sess_01J9Z0003")
    page.set_input_files(".tools [type=file]", [{"name": "notes.txt", "mimeType": "text/plain", "buffer": b"three lines"}])
    page.wait_for_selector(".attached >> text=notes.txt")
    page.evaluate("""() => { const data = new DataTransfer(); data.items.add(new File(["abc"], "pasted.png", { type: "image/png" })); document.querySelector("#message").dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true })); }""")
    page.wait_for_selector(".attached >> text=pasted.png")
    page.set_input_files(".tools [type=file]", [{"name": "film.bin", "mimeType": "application/octet-stream", "buffer": b"x" * (7 << 20)}])
    page.wait_for_selector(".toast >> text=does not fit")
    say(page, "look at these")
    page.wait_for_selector("text=You said: look at these")
    assert [file["name"] for file in server.media] == ["notes.txt", "pasted.png"]
    return page


@test
def a_message_is_edited_and_sent_again_in_the_place_of_the_earlier_one(browser):
    server = StandIn().start()
    page = chat(browser, server, session="sess_01J9Z0003")
    say(page, "first try")
    page.wait_for_selector("text=You said: first try")
    page.click("[aria-label='Edit and send again']")
    assert page.input_value("#message") == "first try"
    page.keyboard.press("Escape")
    assert page.input_value("#message") == ""
    page.click("[aria-label='Edit and send again']")
    page.fill("#message", "second try")
    with page.expect_request("**/undo"):
        page.press("#message", "Control+Enter")
    page.wait_for_selector("text=You said: second try")
    assert server.received == ["first try", "second try"]
    return page


@test
def a_file_is_dropped_anywhere_on_the_page(browser):
    server = StandIn().start()
    page = chat(browser, server, session="sess_01J9Z0003")
    page.evaluate("""() => { const data = new DataTransfer(); data.items.add(new File(["abc"], "dropped.txt", { type: "text/plain" })); for (const type of ["dragover", "drop"]) document.querySelector(".scroll").dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true })); }""")
    page.wait_for_selector(".attached >> text=dropped.txt")
    page.click("[aria-label='Remove dropped.txt']")
    page.wait_for_selector(".attached", state="detached")
    return page


@test
def a_proposal_is_a_card_whose_action_fills_the_field(browser):
    page = chat(browser, StandIn().start())
    say(page, "ghost please")
    page.wait_for_selector(".ghost >> text=Three tests")
    page.click(".ghost button >> text=Run them")
    assert page.input_value("#message") == "Run the skipped tests of jail"
    page.wait_for_selector(".ghost", state="detached")
    return page


@test
def a_ghost_that_waits_is_decided_about_and_its_turn_is_shown(browser):
    server = StandIn().start()
    actions = [{"label": "Do it", "type": "approve"}, {"label": "Run tests", "type": "custom", "payload": {"only": "parser"}}, {"label": "Dismiss", "type": "dismiss"}]
    server.ghosts = [{"id": f"gh_{n}", "trigger": "test_failed: cargo test", "observation": f"Test {n} fails.", "proposal": "Mend it.", "confidence": "high", "actions": actions, "state": "waiting"} for n in (1, 2, 3)]
    page = chat(browser, server)
    page.wait_for_selector(".ghost >> text=Test 1 fails.")
    page.click(".ghost:has-text('Test 1') button >> text=Run tests")
    page.wait_for_selector(".ghost >> text=Test 1 fails.", state="detached")
    page.wait_for_url("**/s/sess_01J9Z0000*")
    page.click("text=Show 1 more proposal")
    page.click(".ghost:has-text('Test 3') button >> text=Later")
    page.wait_for_selector(".ghost:has-text('Test 3')", state="detached")
    assert page.get_attribute(".ghost >> text=Why?", "href") == "/#/shadow/gh_2"
    page.click(".ghost:has-text('Test 2') button >> text=Dismiss")
    page.wait_for_selector(".ghost", state="detached")
    assert server.ghost_decisions == [{"decision": "custom", "label": "Run tests"}, {"decision": "snooze"}, {"decision": "dismiss"}]
    return page


@test
def streamed_text_and_approvals_are_told_to_screen_readers(browser):
    page = chat(browser, StandIn().start())
    page.evaluate("""() => { window.told = []; for (const region of document.querySelectorAll("[aria-live]")) new MutationObserver((changes) => changes.forEach((change) => change.addedNodes.forEach((node) => window.told.push([region.ariaLive, node.textContent])))).observe(region, { childList: true }); }""")
    say(page, "approve this")
    page.wait_for_selector(".ask.pending")
    page.click(".ask.pending >> text=Allow once")
    page.wait_for_selector("text=You said: approve this")
    page.wait_for_function("() => window.told.some(([, text]) => text.includes('You said: approve this'))")
    told = page.evaluate("window.told")
    assert ["assertive", "The assistant wants to run: shell.run"] in told, told
    return page


@test
def the_whole_of_a_turn_is_done_by_the_keyboard(browser):
    page = chat(browser, StandIn().start())
    page.keyboard.type("approve by key")
    page.keyboard.press("Enter")
    page.wait_for_selector(".ask.pending")
    page.locator(".scroll").focus()
    page.keyboard.press("a")
    page.wait_for_selector(".ask >> text=approved")
    page.wait_for_selector("text=You said: approve by key")
    page.keyboard.press("?")
    page.wait_for_selector("dialog >> text=New conversation")
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    page.wait_for_selector("text=What can I do for you?")
    page.wait_for_function("() => document.activeElement.id === 'message'")
    seen = stops(page)
    assert len(seen) > 8 and all(stop[2] and stop[3] for stop in seen), seen
    return page


def stops(page):
    """Each stop of the tabulator: what it is, and whether it and the focus are visible. No element keeps the focus."""
    seen = []
    for _ in range(60):
        page.keyboard.press("Tab")
        stop = page.evaluate("() => { const e = document.activeElement; if (e === document.body) return 'end'; const r = e.getBoundingClientRect(); const s = getComputedStyle(e); return [e.tagName, e.id || e.textContent.slice(0, 20), r.width > 0, s.outlineStyle !== 'none' || e.id === 'message' || e.type === 'file']; }")
        if stop in seen:
            break
        if stop != "end":
            seen.append(stop)
    return seen


@test
def who_is_signed_out_keeps_what_was_typed(browser):
    server = StandIn().start()
    page = chat(browser, server, session="sess_01J9Z0003")
    page.fill("#message", "half a thought")
    server.scopes = None
    for writer in list(server.sockets):
        server.loop.call_soon_threadsafe(writer.close)
    page.wait_for_selector(".bar-notice >> text=You are signed out", timeout=30_000)
    assert page.input_value("#message") == "half a thought"
    server.scopes = ("chat", "approve")
    page.click(".bar-notice >> text=Reload")
    page.wait_for_selector("#message")
    page.wait_for_function("() => document.querySelector('#message').value === 'half a thought'")
    return page


# ---- Control UI


@test
def the_overview_names_what_needs_a_person_and_links_there(browser):
    page = control(browser, StandIn().start())
    page.wait_for_selector("text=jira has failed")
    page.click("text=/Show all/")
    for text in ("The configuration is refused", "shell is quarantined", "mail declares 1 action", "shell.run waits", "budget is nearly spent", "The extension digest", "The job backup was missed", "A notification to ops"):
        page.wait_for_selector(f".needs >> text={text}")
    page.wait_for_selector(".plot svg path", state="attached", timeout=30_000)
    page.click(".needs >> text=jira has failed")
    page.wait_for_selector("h1 >> text=jira")
    page.wait_for_selector("text=JIRA_TOKEN is not set")
    return page


@test
def a_list_is_a_link_with_its_filter_and_order(browser):
    server = StandIn().start()
    page = control(browser, server, "plugins?state=ready&sort=memory:desc")
    page.wait_for_selector("tbody tr")
    names = page.locator("tbody tr td:first-child a").all_inner_texts()
    assert names[0] == "code-search" and "jira" not in names, names
    page.fill("#search", "web")
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 1")
    assert "q=web" in page.url
    page.click("tbody a")
    page.wait_for_selector("h1 >> text=webhook")
    page.go_back()
    page.wait_for_function("() => document.querySelector('#search')?.value === 'web'")
    return page


@test
def a_plugin_is_operated_and_its_actions_and_log_are_seen(browser):
    server = StandIn().start()
    page = control(browser, server, "plugins/code-search")
    page.click("text=Restart")
    page.wait_for_selector(".toast >> text=code-search: ready")
    page.click(".page-head >> text=Stop")
    page.click("dialog >> .danger")
    page.wait_for_timeout(100)
    operated = [target for method, target in server.requests if method == "POST"]
    assert operated == ["/api/plugins/code-search/restart", "/api/plugins/code-search/stop"], operated
    page.click(".tabs >> text=Actions")
    page.click("summary >> text=search")
    page.locator("details[open] >> text=Call").last.click()
    page.wait_for_selector("details[open] >> text=This is needed.")
    page.locator("details[open] textarea").first.fill("fn .*")
    page.locator("details[open] button[type=submit]").click()
    page.wait_for_selector("text=12 lines match <system>")
    page.click(".tabs >> text=Log")
    page.wait_for_selector(".log >> text=ctags exited")
    page.select_option(".filters select", "error")
    page.wait_for_function("() => [...document.querySelectorAll('.log > div')].every((line) => line.className === 'level-error')")
    return page


@test
def approvals_are_decided_by_one_key(browser):
    server = StandIn().start()
    page = control(browser, server, "approvals")
    page.wait_for_selector(".approval.chosen >> text=git push")
    page.keyboard.press("j")
    page.wait_for_selector(".approval.chosen >> text=mail.send")
    page.keyboard.press("d")
    page.wait_for_selector(".toast >> text=mail.send: denied")
    page.wait_for_selector(".approval.chosen >> text=git push")
    page.keyboard.press("a")
    page.wait_for_selector(".toast >> text=shell.run: approved")
    assert [a["state"] for a in server.approvals[:2]] == ["approved", "denied"]
    return page


@test
def proposals_are_decided_by_one_key_and_the_loop_rests(browser):
    server = StandIn().start()
    server.ghosts = fixtures.ghosts()
    page = control(browser, server)
    page.wait_for_selector(".nav a[href='#/shadow'] .count >> text=3")
    page.keyboard.press("g")
    page.keyboard.press("h")
    page.wait_for_selector(".approval.chosen >> text=Two tests of the parser fail")
    page.keyboard.press("j")
    page.wait_for_selector(".approval.chosen >> text=A key of a provider")
    page.keyboard.press("d")
    page.wait_for_selector(".toast >> text=dismissed")
    page.wait_for_selector(".approval.chosen >> text=Two tests of the parser fail")
    page.keyboard.press("s")
    page.wait_for_selector(".approval.chosen >> text=A rebase of main stopped")
    # One without a tool that sees its path offers no act, by no key either.
    assert page.locator(".approval.chosen button.primary").count() == 0
    page.keyboard.press("a")
    page.locator(".approval", has_text="Two tests").locator("button", has_text="Run the tests").click()
    page.wait_for_selector(".toast >> text=A turn has begun")
    page.click(".approval.chosen >> text=Later")
    page.click("dialog >> text=4 hours")
    page.wait_for_selector("text=No proposal waits")
    assert server.ghost_decisions == [{"decision": "dismiss"}, {"decision": "snooze"}, {"decision": "custom", "label": "Run the tests"}, {"decision": "snooze", "snoozeFor": 14_400_000}], server.ghost_decisions
    page.locator(".approval", has_text="cargo deny").locator("text=Mute the repository").click()
    page.click(".page-head >> text=Pause")
    page.click("dialog >> text=Until I say so")
    page.wait_for_selector("text=Your loop rests until you let it go on")
    page.click(".page-head >> text=Go on")
    page.wait_for_selector(".page-head >> text=watches")
    page.click(".tabs >> text=Triggers")
    page.wait_for_selector("tr >> text=18 %")
    page.wait_for_selector(".notice >> text=raise max_directories")
    page.wait_for_selector("td >> text=Held back: told before 160")
    page.locator("li", has_text="/home/alice/src/talon").locator("text=Listen again").click()
    page.wait_for_function("() => document.querySelectorAll('.plain-list li').length === 1")
    assert [json.loads(body) for body in bodies(server, "/api/shadow/pause")] == [{"paused": True, "repository": "/home/alice/src/talon"}, {"paused": True, "pauseFor": 0}, {"paused": False}, {"paused": False, "repository": "/home/alice/src/talon"}]
    page.click(".tabs >> text=Sent")
    page.wait_for_selector("td >> text=no model answered within 60 s")
    page.click("tbody a >> nth=0")
    page.wait_for_selector(".passed >> text=a piece of work ended")
    page.wait_for_selector(".measures >> text=Excerpt")
    assert page.url.endswith("#/shadow/gh_1")
    return page


@test
def the_loop_of_somebody_else_is_seen_and_only_ones_own_is_paused(browser):
    server = StandIn().start()
    bob, carol = "gw:local/bob", "gw:local/carol"
    server.ghosts = [{**fixtures.ghosts()[0], "id": f"gh_{who}", "senderId": who} for who in (bob, carol)]
    server.shadows = {bob: {**server.shadow, "paused": True, "triggers": server.shadow["triggers"][:1]}, carol: {**server.shadow, "triggers": server.shadow["triggers"][1:2]}}
    page = control(browser, server, "shadow?everybody=1")
    page.click(f".approval >> text={bob}")
    page.wait_for_selector(f".filters >> text=Of {bob}")
    page.wait_for_selector("td >> text=test_failed")
    page.wait_for_selector(".filters .badge >> text=rests")
    # The head is about the viewer's own loop, which does not rest.
    page.wait_for_selector(".page-head .badge >> text=watches")
    assert page.locator("tbody tr").count() == 1 and page.locator(".page-head >> text=Go on").count() == 0 and page.locator("text=Your loop rests").count() == 0
    # Another query leaves the view open: it never shows the one for the other.
    server.latency = 0.3
    page.evaluate(f"location.hash = '#/shadow?tab=triggers&sender={carol}'")
    page.wait_for_selector(f".filters >> text=Of {carol}")
    page.wait_for_selector(".filters .badge >> text=watches")
    assert page.locator("tbody tr").all_inner_texts()[0].startswith("repeated_failure"), page.locator("tbody tr").all_inner_texts()
    server.latency = 0
    page.click(".page-head >> text=Pause")
    page.click("dialog >> text=Until I say so")
    page.wait_for_selector(".page-head .badge >> text=rests")
    assert page.locator(".filters .badge >> text=watches").count() == 1
    page.click(f".filters >> text=Of {carol}")
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 5")
    return page


@test
def what_waits_is_shown_however_much_was_decided_since(browser):
    server = StandIn().start()
    server.ghosts_a_page = 2
    one = fixtures.ghosts()[0]
    of = lambda state, n: [{**one, "id": f"gh_{state}_{at}", "observation": f"{state} {at}.", "state": state} for at in range(n)]
    server.ghosts = of("dismissed", 5) + of("waiting", 5) + of("snoozed", 3)
    server.approvals = [{**server.approvals[0], "id": f"ap_{at}", "state": "pending"} for at in range(60)]
    page = control(browser, server, "shadow")
    page.wait_for_selector(".nav a[href='#/approvals'] .count >> text=50+")
    page.wait_for_selector(".nav a[href='#/shadow'] .count >> text=2+")
    page.wait_for_selector(".tabs [aria-current=page] >> text=2+")
    page.wait_for_selector("section .approval >> text=snoozed 0.")
    assert page.locator(".approval").count() == 4
    # Twice on what is one page further.
    page.locator("text=Load more").first.dblclick()
    page.wait_for_selector(".tabs [aria-current=page] >> text=4+")
    page.locator("text=Load more").first.click()
    page.wait_for_selector(".approval >> text=waiting 4.")
    page.wait_for_function("() => !document.querySelector('.tabs [aria-current=page]').textContent.includes('+')")
    page.locator("text=Load more").click()
    page.wait_for_selector(".approval >> text=snoozed 2.")
    shown = page.locator(".approval h2").all_inner_texts()
    assert shown == [f"waiting {at}." for at in range(5)] + [f"snoozed {at}." for at in range(3)], shown
    # What comes meanwhile moves the pages, and none falls between two of them.
    server.ghosts.insert(0, {**one, "id": "gh_new", "observation": "It is new."})
    page.wait_for_selector(".approval >> text=It is new.")
    assert page.locator(".approval >> text=waiting 3.").count() == 1
    # Another choice while a page further is read begins at the first page, and has nothing of the other.
    server.ghosts = [{**one, "id": f"gh_bob_{at}", "observation": f"bob {at}.", "senderId": "gw:local/bob"} for at in range(3)] + server.ghosts
    page.check("text=Of everybody")
    page.wait_for_selector(".approval >> text=bob 1.")
    assert page.locator(".approval >> text=It is new.").count() == 0
    server.latency = 0.2
    page.locator("text=Load more").first.click()
    page.uncheck("text=Of everybody")
    page.wait_for_selector(".approval >> text=It is new.")
    page.wait_for_selector(".tabs [aria-current=page] >> text=2+")
    server.latency = 0
    page.locator("text=Load more").first.click()
    page.wait_for_selector(".approval >> text=waiting 2.")
    assert page.locator(".approval >> text=bob").count() == 0 and page.locator(".approval >> text=waiting 3.").count() == 0
    return page


@test
def a_session_has_its_loop_its_sub_agents_and_what_hooks_changed(browser):
    server = StandIn().start()
    page = control(browser, server, "sessions/sess_01J9Z0001")
    page.wait_for_selector(".loop .active >> text=Using tools")
    page.wait_for_selector("text=step 2 of 24")
    assert page.locator(".loop .done").count() == 2
    page.wait_for_selector(".tasks >> text=Say what to change")
    page.click("summary >> text=reviewer")
    page.wait_for_selector("details[open] strong >> text=ring-compat 0.9")
    page.click("summary >> text=Hooks changed this")
    page.wait_for_selector(".diff-add >> text=on call this week")
    page.click("text=Cancel the turn")
    page.wait_for_selector(".toast >> text=The turn was ended")
    # The stream of its events is taken up where it ended.
    server.emit("sess_01J9Z0001", "subagent.result", {"id": "sa_2", "agent": "licences", "result": "All are fine.", "tokensUsed": 9, "cost": 0, "duration": 10})
    page.wait_for_selector(".fold:has-text('licences') .badge >> text=done")
    page.goto(f"{server.url}/#/sessions/sess_01J9Z0003")
    page.wait_for_selector("text=no turn runs")
    page.click("text=Compact")
    page.click("dialog .primary")
    page.wait_for_selector(".toast >> text=9 messages became a summary")
    page.click("text=Delete")
    page.click("dialog .danger")
    page.wait_for_selector("h1 >> text=Sessions")
    return page


@test
def a_plugin_shows_what_it_may_what_it_plays_and_what_it_uses(browser):
    server = StandIn().start()
    page = new_page(browser)
    page.clock.install()
    page.goto(f"{server.url}/#/plugins/code-search")
    page.clock.resume()
    for text in ("enforced: it does not start without", "fs.read /srv/code", "declared, not granted", "9f2c1e7a40b8"):
        page.wait_for_selector(f"text={text}")
    # Two samples make a line; of processor time the first says nothing yet.
    for _ in range(3):
        with page.expect_response("**/api/plugins"):
            page.clock.fast_forward(5000)
    page.wait_for_function("() => document.querySelectorAll('.plots svg .line').length === 2")
    page.goto(f"{server.url}/#/extensions")
    page.wait_for_selector("text=an older version runs")
    page.wait_for_selector("text=in function 'task'")
    return page


@test
def jobs_notifications_and_memories_are_worked_on(browser):
    server = StandIn().start()
    page = control(browser, server, "schedule")
    page.locator("tr", has_text="digest").locator("text=Run now").click()
    page.wait_for_selector(".toast >> text=digest was started")
    page.locator("tr", has_text="every 6h").locator("text=Resume").click()
    page.goto(f"{server.url}/#/notifications")
    page.locator("tr", has_text="jira has failed").locator("text=Try again").click()
    page.wait_for_selector(".toast >> text=attempted again")
    page.goto(f"{server.url}/#/memory?q=staging")
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 1")
    page.click("tbody >> text=Forget")
    page.click("dialog .danger")
    page.wait_for_selector(".toast >> text=Forgotten")
    done = [(method, target) for method, target in server.requests if method not in ("GET",)]
    assert done == [("POST", "/api/schedule/digest/run"), ("PATCH", "/api/schedule/backup"), ("POST", "/api/notifications/retry"), ("DELETE", "/api/memories/m3")], done
    return page


@test
def loading_failing_and_forbidden_are_said(browser):
    server = StandIn(scopes=("chat", "operate")).start()
    page = control(browser, server)
    server.latency = 1
    page.goto(f"{server.url}/#/schedule")
    page.wait_for_selector("[role=status][aria-label^=Loading]")
    page.wait_for_selector("tbody tr")
    server.latency = 0
    server.refused = {"/api/audit": 403, "/api/doctor": 500}
    page.goto(f"{server.url}/#/audit")
    page.wait_for_selector("h2 >> text=You may not see this")
    page.wait_for_selector("text=this needs another scope")
    page.goto(f"{server.url}/#/doctor")
    page.wait_for_selector("text=This did not work")
    page.wait_for_selector("text=req_7c2k")
    server.refused = {}
    page.click("text=Try again")
    page.wait_for_selector("text=csv-query could take all memory")
    # A page that is opened while the gateway is away waits for it.
    server.down = True
    other = new_page(browser)
    other.goto(server.url)
    other.wait_for_selector("h2 >> text=This did not work")
    server.down = False
    other.wait_for_selector("h1 >> text=Overview")
    page.troubles += other.troubles
    return page


@test
def nothing_moves_for_who_wants_that(browser):
    moving = "() => document.getAnimations().length"
    for reduced in (False, True):
        page = control(browser, StandIn().start(), "sessions/sess_01J9Z0001", reduced=reduced)
        page.wait_for_selector(".loop .active")
        assert (page.evaluate(moving) == 0) == reduced
    return page


@test
def every_view_opens_by_the_keyboard(browser):
    page = control(browser, StandIn().start())
    for key, title in (("a", "Approvals"), ("c", "Calls"), ("s", "Sessions"), ("h", "Shadow loop"), ("p", "Plugins"), ("x", "Extensions"), ("j", "Schedule"), ("n", "Notifications"), ("m", "Memory"), ("e", "Configuration"), ("l", "Audit"), ("d", "Doctor"), ("o", "Overview")):
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.wait_for_selector(f"h1 >> text={title}")
    page.keyboard.press("g")
    page.keyboard.press("p")
    page.wait_for_selector("tbody tr")
    page.keyboard.press("/")
    page.keyboard.type("jira")
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 1")
    page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")
    seen = stops(page)
    assert len(seen) > 20 and all(stop[2] and stop[3] for stop in seen), seen
    return page


@test
def a_key_is_changed_with_a_check_a_difference_and_a_reset(browser):
    server = StandIn().start()
    page = control(browser, server, "configuration")
    row = page.locator("tr", has_text="agent.turn.iterations").first
    row.wait_for()
    assert page.locator("tr", has_text="gateway.address").locator("button").count() == 0
    fixed = page.locator("tr", has_text="gateway.address")
    fixed.locator("summary").click()
    assert "take it out there first" in fixed.inner_text()
    row.locator("text=Edit").click()
    page.fill("#config-value", '"many"')
    page.wait_for_selector("dialog .problem >> text=expected a whole number")
    assert page.locator("dialog button[type=submit]").is_disabled()
    page.fill("#config-value", "36")
    page.wait_for_selector("dialog .diff-add >> text=36")
    page.wait_for_selector("dialog >> text=This fits")
    page.click("dialog button[type=submit]")
    page.wait_for_selector(".toast >> text=Applied")
    row.locator("text=Reset").click()
    page.click("dialog .primary")
    page.wait_for_function("() => document.querySelectorAll('dialog').length === 0")
    page.wait_for_timeout(100)
    assert server.patches == [{"agent": {"turn": {"iterations": 36}}}, {"agent": {"turn": {"iterations": None}}}], server.patches
    page.click("summary >> text=models.default, log.level")
    page.wait_for_selector(".diff-add >> text=local/small")
    return page


@test
def calls_findings_and_records_are_read_and_a_quarantine_ends(browser):
    server = StandIn().start()
    page = control(browser, server, "calls")
    page.click("tbody a >> text=github.list_runs")
    page.wait_for_selector(".layers >> text=changed it")
    page.wait_for_selector("mark >> text=·")
    assert page.locator("mark").all_inner_texts() == ["·", "·"]
    assert page.locator(".layers li").count() == 13 and page.locator(".layers li", has_text="µs").count() == 12
    page.goto(f"{server.url}/#/audit")
    page.click("text=Verify")
    page.wait_for_selector("text=/9,120 records/")
    page.click("summary >> text=patch_config")
    page.wait_for_selector("details[open] >> text=prev")
    page.goto(f"{server.url}/#/doctor")
    page.wait_for_selector("text=csv-query could take all memory")
    page.wait_for_selector("text=Delegate=memory pids cpu")
    page.goto(f"{server.url}/#/plugins/shell")
    page.click("text=Lift the quarantine")
    page.wait_for_selector(".toast >> text=shell")
    assert ("POST", "/api/plugins/shell/lift-quarantine") in server.requests
    page.goto(f"{server.url}/#/overview")
    page.select_option(".row.apart select", "day")
    page.wait_for_selector(".plot svg path", state="attached")
    assert "range=day" in page.url
    page.goto(f"{server.url}/#/costs")
    page.wait_for_selector("h2 >> text=By day")
    page.goto(f"{server.url}/#/sessions/sess_01J9Z0000")
    page.click("text=Undo the last turn")
    page.click("dialog .primary")
    page.wait_for_function("() => document.querySelectorAll('dialog').length === 0")
    return page


@test
def what_the_server_does_not_have_is_said(browser):
    page = control(browser, StandIn(further=False).start(), "calls")
    for view in ("calls", "audit", "configuration", "doctor"):
        page.goto(page.url.split("#")[0] + f"#/{view}")
        page.wait_for_selector("text=Not available on this server")
    page.goto(page.url.split("#")[0] + "#/nothing")
    page.wait_for_selector("text=There is no such thing")
    return page


@test
def who_is_not_signed_in_or_may_only_talk_is_told_what_to_do(browser):
    page = new_page(browser)
    page.goto(StandIn(scopes=None).start().url)
    page.fill("#link", "hello")
    page.click("button >> text=Open")
    page.wait_for_selector("text=This is no link of talon gateway open")
    other = new_page(browser)
    other.goto(StandIn(scopes=("chat", "approve")).start().url)
    other.wait_for_selector("#message")
    assert other.url.endswith("/chat")
    other.goto(StandIn(scopes=("approve",)).start().url)
    other.wait_for_selector("text=it needs the scope operate")
    page.troubles += other.troubles
    return page


@test
def a_credential_that_is_revoked_while_the_page_is_open_is_said(browser):
    server = StandIn().start()
    page = control(browser, server, "plugins")
    page.wait_for_selector("tbody tr")
    server.scopes = None
    page.wait_for_selector(".bar-notice >> text=You are signed out", timeout=30_000)
    assert page.locator("tbody tr").count() == 11, "what was read stays"
    return page


@test
def a_gateway_that_restarts_leaves_the_page_usable(browser):
    server = StandIn().start()
    page = control(browser, server, "plugins")
    page.wait_for_selector("tbody tr")
    server.stop()
    page.wait_for_selector(".bar-notice >> text=does not answer", timeout=30_000)
    page.fill("#search", "jira")
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 1")
    server.again()
    page.wait_for_selector(".bar-notice", state="detached", timeout=60_000)
    return page


@test
def a_wrong_clock_is_said_and_times_are_the_servers(browser):
    page = new_page(browser)
    page.clock.set_system_time("2031-03-04T10:00:00Z")
    page.goto(StandIn().start().url + "/#/notifications")
    page.wait_for_selector("text=The clocks of this computer and of the server differ")
    page.wait_for_selector("td >> text=2 hr ago")
    # In the zone of the viewer, which is Berlin here.
    at = datetime.datetime.fromtimestamp(fixtures.CALLS[1]["at"] / 1000, zoneinfo.ZoneInfo("Europe/Berlin"))
    page.goto(page.url.split("#")[0] + "#/calls/call_1")
    page.wait_for_selector(f"dd >> text={at:%H:%M:%S}")
    return page


@test
def the_pages_speak_german_and_both_themes(browser):
    page = control(browser, StandIn().start(), language="de-DE", theme="dark")
    page.wait_for_selector("text=/brauchen Sie/")
    assert page.evaluate("document.documentElement.lang") == "de"
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.select_option("#theme", "light")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark
    page.select_option("#language", "en")
    page.wait_for_selector("text=/things need you/")
    return page


@test
def nothing_is_wider_than_the_smallest_screen(browser):
    from screenshots import CONTROL

    server = StandIn().start()
    server.ghosts = fixtures.ghosts()
    page = control(browser, server, width=360)
    for view in CONTROL:
        page.goto(f"{server.url}/#/{view}")
        page.wait_for_selector("main#main h1")
        page.wait_for_timeout(100)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 360, (view, wide)
    page.goto(f"{server.url}/chat#/s/sess_01J9Z0000")
    page.wait_for_selector(".answer >> text=The build fails")
    page.wait_for_selector(".ghost")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.click("#menu")
    page.wait_for_selector(".drawer .side-list a")
    return page


def chosen(only):
    """Those of one page (`--chat`, `--control`), or by name, or all."""
    first = TESTS.index(the_overview_names_what_needs_a_person_and_links_there)
    if only == ["--chat"]:
        return TESTS[:first]
    if only == ["--control"]:
        return TESTS[first:]
    return [function for function in TESTS if not only or function.__name__ in only]


def main(only):
    failed = []
    with chromium() as browser:
        for function in chosen(only):
            try:
                page = function(browser)
                assert not page.troubles, page.troubles
                print(f"ok      {function.__name__}", flush=True)
            except Exception:  # noqa: BLE001
                failed.append(function.__name__)
                print(f"FAILED  {function.__name__}\n{traceback.format_exc()}", flush=True)
                pages = [page for context in browser.contexts for page in context.pages]
                for page in pages[-1:] if "TALON_TEST_SCREENSHOTS" in os.environ else []:
                    page.screenshot(path=f"{os.environ['TALON_TEST_SCREENSHOTS']}/{function.__name__}.png")
                    print(page.troubles, page.evaluate("JSON.stringify(localStorage)"))
            for context in browser.contexts:
                context.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
