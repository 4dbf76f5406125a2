// The page /chat.

import { connection, hasScope } from "../lib/api.js";
import { boot, connectionBar } from "../ui/boot.js";
import { h, show } from "../lib/dom.js";
import { dollars, number } from "../lib/format.js";
import { t } from "../lib/i18n.js";
import { shortcut } from "../lib/keys.js";
import { href, place } from "../lib/router.js";
import { onceAFrame } from "../lib/store.js";
import { name, plain } from "../lib/text.js";
import { word } from "../lib/word.js";
import { confirm } from "../ui/dialog.js";
import { icon } from "../ui/icons.js";
import { button, failure, state } from "../ui/parts.js";
import { failed } from "../ui/toast.js";
import { acceptDrops, compose, composer, focusComposer, showDraft } from "./composer.js";
import { openExport } from "./export.js";
import { ghostView, itemView } from "./items.js";
import { outbox } from "./outbox.js";
import { newChat, sidebar } from "./sidebar.js";
import { canUndo, chat, decide, decideGhost, link, loadModels, openSession, removeSession, send, stop, undo } from "./state.js";

/** Items that are drawn; a button draws as many more of the earlier ones. */
const PAGE = 80;
/** The loop of a turn, in order. */
const PHASES = ["planning", "deciding", "executing", "evaluating", "responding"];

let scroller = null;
let [following, shownItems, sessionDrawn, showsAllGhosts] = [true, PAGE, undefined, false];

const turnsAfter = (items, item) => items.filter(({ kind }, at) => kind === "user" && at >= items.indexOf(item)).length;

function edit(item) {
  compose(item.text, { turns: turnsAfter(chat.get().transcript.items, item) });
}

async function retry() {
  const last = chat.get().transcript.items.findLast(({ kind }) => kind === "user");
  if (!last) return;
  try {
    if (canUndo()) await undo(1);
    await send(last.text);
  } catch (error) {
    failed(error);
  }
}

function transcriptView() {
  const { transcript, error, open } = chat.get();
  if (error) return h("div", { class: "center" }, failure(error, () => openSession(open)));
  if (!transcript) return welcome();
  if (!transcript.loaded && !transcript.items.length) return h("div", { class: "center" }, state("sessions", t("state.loading")));
  const { items, running } = transcript;
  const first = Math.max(0, items.length - shownItems);
  const lastUser = items.findLast(({ kind, status }) => kind === "user" && status === "sent");
  const lastAnswer = items.findLast(({ kind }) => kind === "answer");
  return h("div", { class: "column", id: "transcript" },
    first > 0 ? h("div", { class: "row center-row" }, button(t("chat.earlier", { n: first }), () => { shownItems += PAGE * 2; following = false; chat.set({}); }, { look: "small" })) : null,
    items.slice(first).map((item) => itemView(item, { edit, retry, isLast: item === items.at(-1), canEdit: !running && item === lastUser, canRetry: !running && item === lastAnswer })),
    running || items.at(-1)?.status === "sending" ? working(transcript) : null,
    !items.length ? h("div", { class: "center" }, state("sessions", t("chat.empty"), t("chat.empty_text"))) : null);
}

function working({ phase, items, plan }) {
  const what = phase ? word("phase", phase.phase) : t("phase.waiting");
  const waits = items.some((item) => ["approval", "question"].includes(item.kind) && item.state === "pending");
  const steps = plan?.steps ?? [];
  const at = PHASES.indexOf(phase?.phase);
  return h("div", { key: "working", class: "working stack tight" },
    h("div", { class: "row" }, h("span", { class: "spinner", "aria-hidden": "true" }), h("span", { class: "muted" }, waits ? t("phase.person") : what), phase && phase.iteration > 1 ? h("span", { class: "faint tiny" }, t("phase.step", { n: phase.iteration, most: phase.maxIterations })) : null),
    at < 0 ? null : h("ol", { class: "phases", "aria-hidden": "true" }, PHASES.map((name, place) => h("li", { class: place < at ? "done" : place === at ? "active" : "", title: word("phase", name) }))),
    steps.length ? h("ol", { class: "plan" }, steps.slice(0, 50).map((step) => h("li", { class: step.state }, name(step.text, 300)))) : null);
}

function welcome() {
  return h("div", { class: "center welcome" }, h("h1", {}, t("chat.welcome")), h("p", { class: "muted" }, t("chat.welcome_text")));
}

function header() {
  const { details, open, transcript, models } = chat.get();
  const model = models.find(({ id, alias }) => [id, alias].includes(details?.metadata.model) || id.endsWith(`/${transcript?.model || details?.metadata.model}`));
  const used = model?.contextWindow > 0 && transcript?.promptTokens ? Math.min(1, transcript.promptTokens / model.contextWindow) : null;
  return h("header", { class: "chat-head" },
    button(t("sessions.title"), () => chat.set({ drawer: !chat.get().drawer }), { look: "plain", sign: "menu", iconOnly: true, id: "menu" }),
    h("h1", { class: "grow clip" }, open ? (details?.title ? name(details.title, 120) : t("sessions.untitled")) : t("sessions.new")),
    used === null ? null : h("div", { class: "context", title: t("chat.context_of", { used: number(transcript.promptTokens), all: number(model.contextWindow) }) }, h("span", { class: "faint tiny number" }, t("chat.context", { n: Math.round(used * 100) })), h("div", { class: `bar${used > 0.9 ? " bad" : used > 0.7 ? " warn" : ""}`, role: "meter", "aria-label": t("chat.context_label"), "aria-valuenow": Math.round(used * 100), "aria-valuemin": 0, "aria-valuemax": 100 }, h("i", { css: { width: `${used * 100}%` } }))),
    details ? h("span", { class: "faint small number cost", title: t("chat.cost") }, dollars(details.cost)) : null,
    open ? [
      hasScope("operate") ? h("a", { class: "button plain icon-only", href: `/#/sessions/${encodeURIComponent(open)}`, title: t("chat.in_control"), "aria-label": t("chat.in_control") }, icon("overview")) : null,
      button(t("export.title"), () => openExport(open), { look: "plain", sign: "download", iconOnly: true }),
      button(t("sessions.delete"), removeOpen, { look: "plain", sign: "trash", iconOnly: true }),
    ] : null);
}

async function removeOpen() {
  const { open, details } = chat.get();
  if (!(await confirm(t("sessions.delete"), t("sessions.delete_text", { title: plain(details?.title || open, 80) }), t("action.delete")))) return;
  try {
    await removeSession(open);
  } catch (error) {
    failed(error);
  }
}

/** Says that the connection is away, and when it is tried again. */
function linkBar() {
  const { status, attempts } = link.state.get();
  if (connection.get().auth === "revoked") return connectionBar();
  if (status === "open" || (status === "connecting" && attempts === 0)) return null;
  const waiting = outbox.own().length;
  return h("div", { class: "bar-notice warn", role: "status" }, h("strong", {}, t("chat.reconnecting")), " ", waiting ? t("chat.waiting", { n: waiting }) : t("chat.nothing_lost"), " ", button(t("action.now"), link.retryNow, { look: "small" }));
}

function ghosts() {
  const text = (ghost, { payload }) => (typeof payload === "string" ? payload : (payload?.text ?? payload?.message ?? t("ghost.do", { proposal: ghost.proposal })));
  const use = (ghost) => (action) => decideGhost(ghost, action, () => action.type !== "dismiss" && compose(text(ghost, action)));
  const all = chat.get().ghosts;
  if (!all.length) return null;
  // The latest alone, unless somebody wants all: the conversation is what this page is about.
  const toggle = all.length > 1 ? button(showsAllGhosts ? t("ghost.fewer") : t("ghost.more", { n: all.length - 1 }), () => { showsAllGhosts = !showsAllGhosts; chat.set({}); }, { look: "plain small", sign: "spark" }) : null;
  return h("div", { class: "ghosts" }, toggle, (showsAllGhosts ? all : all.slice(-1)).map((ghost) => ghostView(ghost, {
    use: use(ghost), dismiss: () => use(ghost)({ type: "dismiss" }),
    // One that nobody keeps cannot be put off, and has no reasons.
    later: ghost.state ? () => use(ghost)({ type: "snooze" }) : null, why: ghost.state && hasScope("operate") ? `/#/shadow/${encodeURIComponent(ghost.id)}` : null,
  })));
}

function page() {
  const { drawer, transcript } = chat.get();
  const behind = transcript && !following && transcript.items.length;
  return [
    h("a", { class: "skip", href: "#message", on: { click: (event) => { event.preventDefault(); focusComposer(); } } }, t("chat.skip")),
    h("div", { class: `chat${drawer ? " drawer" : ""}` },
      sidebar(),
      h("div", { class: "veil", on: { click: () => chat.set({ drawer: false }) } }),
      h("main", { class: "talk" },
        header(),
        linkBar(),
        h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("chat.transcript"), ref: (element) => { scroller = element; }, on: { scroll: onScroll } }, transcriptView()),
        behind ? h("div", { class: "jump" }, button(t("chat.latest"), () => { following = true; chat.set({}); }, { sign: "down", look: "small" })) : null,
        h("div", { class: "foot" }, ghosts(), composer(), h("p", { class: "faint tiny hint" }, t("chat.hint"))))),
  ];
}

function onScroll() {
  const atEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 60;
  if (atEnd !== following) {
    following = atEnd;
    chat.set({});
  }
}

function keys() {
  shortcut("Ctrl+Enter", t("keys.send"), () => false, { inFields: true });
  shortcut("n", t("sessions.new"), newChat);
  shortcut("/", t("sessions.search"), () => { chat.set({ drawer: true }); requestAnimationFrame(() => document.getElementById("search")?.focus()); });
  shortcut("m", t("composer.label"), focusComposer);
  shortcut("Escape", t("composer.stop"), () => { if (chat.get().drawer) chat.set({ drawer: false }); else if (chat.get().transcript?.running) stop(); else return false; }, { inFields: true });
  const waiting = () => chat.get().transcript?.items.findLast((item) => item.kind === "approval" && item.state === "pending");
  shortcut("a", t("keys.allow"), () => { const item = waiting(); if (item) decide(item, { allow: true, digest: item.request.digest }); });
  shortcut("d", t("keys.deny"), () => { const item = waiting(); if (item) decide(item, { allow: false }); });
  for (const [key, step] of [["j", 1], ["k", -1]]) {
    shortcut(key, t(step > 0 ? "keys.next_session" : "keys.previous_session"), () => {
      const { sessions, open } = chat.get();
      const next = sessions[sessions.findIndex(({ id }) => id === open) + step];
      if (next) location.hash = href(["s", next.id]);
    });
  }
}

boot((root) => {
  keys();
  acceptDrops(root);
  const draw = onceAFrame(() => {
    const { open, details } = chat.get();
    if (sessionDrawn !== open) [sessionDrawn, following, shownItems] = [open, true, PAGE];
    document.title = open && details?.title ? `${plain(details.title, 60)} · Talon` : t("page.chat");
    show(root, page());
    if (following && scroller) scroller.scrollTop = scroller.scrollHeight;
  });
  chat.subscribe(draw);
  connection.subscribe(draw);
  place.subscribe(() => { showDraft(); draw(); });
  outbox.adopt().then(() => {
    loadModels();
    openSession(place.get().parts[0] === "s" ? place.get().parts[1] : null);
    // What was drawn before had the draft of no session.
    showDraft();
    draw();
  });
  setInterval(draw, 30_000);
});
