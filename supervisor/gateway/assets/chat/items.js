// How the items of a transcript look.

import { h } from "../lib/dom.js";
import { clock, dateTime, dollars, duration, serverNow } from "../lib/format.js";
import { t } from "../lib/i18n.js";
import { markdown } from "../ui/markdown.js";
import { block, name, plain } from "../lib/text.js";
import { word } from "../lib/word.js";
import { args, copy, json } from "../ui/code.js";
import { schemaForm } from "../ui/form.js";
import { icon } from "../ui/icons.js";
import { badge, button, notice } from "../ui/parts.js";
import { canUndo, chat, decide, forgetMessage, retryMessage } from "./state.js";

/** What was opened in a long text, and forms that are being filled in, by item. */
const opened = new WeakMap();
function limitsOf(item) {
  if (!opened.has(item)) opened.set(item, {});
  return opened.get(item);
}

function redraw(item) {
  return () => {
    item.version += 1;
    chat.set({});
  };
}

/** An item, drawn again only when it changed. */
export function itemView(item, context) {
  const draw = VIEWS[item.kind];
  const memo = `${item.version} ${context.isLast} ${item.kind === "user" ? context.canEdit : ""} ${item.kind === "answer" && context.canRetry}`;
  return h("article", { key: item.key, memo, class: `item ${item.kind}`, "aria-label": t(`item.${item.kind}`) }, () => draw(item, context));
}

const VIEWS = { user, answer, thought, tool, subagent, approval, question, notice: remark, error, summary };

function user(item, { edit, canEdit }) {
  const limits = limitsOf(item);
  const state = { waiting: t("message.waiting"), sending: t("message.sending"), failed: item.problem }[item.status];
  return [
    item.sender ? h("p", { class: "tiny faint" }, name(item.sender, 60)) : null,
    h("div", { class: "bubble plain-text" }, block(item.text, { most: limits.text ?? 20_000, more: () => { limits.text = (limits.text ?? 20_000) * 4; redraw(item)(); } }), item.files?.length ? h("div", { class: "row files" }, item.files.map((file) => h("span", { class: "badge plain" }, icon("attach"), name(file, 60)))) : null),
    h("div", { class: "under" },
      state ? h("span", { class: item.status === "failed" ? "bad-text" : "faint" }, state) : h("time", { class: "faint", title: dateTime(item.at) }, clock(item.at, false)),
      item.status === "failed" ? [button(t("action.retry"), () => retryMessage(item.id), { look: "small" }), button(t("action.discard"), () => forgetMessage(item.id), { look: "small plain" })] : [
        button(t("action.copy"), () => copy(item.text), { look: "plain small quiet", sign: "copy", iconOnly: true }),
        canEdit ? button(t("message.edit"), () => edit(item), { look: "plain small quiet", sign: "pencil", iconOnly: true, title: canUndo() ? t("message.edit") : t("message.edit_kept") }) : null,
      ]),
  ];
}

function answer(item, { retry, canRetry }) {
  return [
    h("div", { class: "prose" }, item.text ? markdown(item.text, limitsOf(item), redraw(item)) : h("p", { class: "faint" }, "…"), item.live ? h("span", { class: "caret", "aria-hidden": "true" }) : null),
    item.live ? null : h("div", { class: "under" },
      button(t("action.copy"), () => copy(item.text), { look: "plain small quiet", sign: "copy", iconOnly: true }),
      canRetry ? button(t("message.retry"), retry, { look: "plain small quiet", sign: "retry", iconOnly: true }) : null,
      item.usage ? h("span", { class: "faint tiny number" }, `${plain(item.model, 60)} · ${t("tokens", { n: item.usage.totalTokens })}`) : null),
  ];
}

function fold(look, sign, head, body, { open = false, id } = {}) {
  return h("details", { class: `fold ${look}`, open, key: id }, h("summary", {}, icon(sign), head), h("div", { class: "fold-body stack" }, body));
}

function thought(item) {
  const limits = limitsOf(item);
  return fold("thought-fold", "thought", h("span", { class: "grow clip" }, item.live ? t("thought.live") : t("thought.done")), h("div", { class: "plain-text muted" }, block(item.text, { most: limits.text ?? 20_000, more: () => { limits.text = (limits.text ?? 20_000) * 4; redraw(item)(); } })));
}

/** Arguments of a call in one line. */
function brief(value) {
  if (value === null || value === undefined) return "";
  const entries = typeof value === "object" ? Object.values(value) : [value];
  return plain(entries.map((entry) => (typeof entry === "string" ? entry : JSON.stringify(entry))).join(", "), 120);
}

function tool(item) {
  const { result, progress } = item;
  const share = progress?.total > 0 ? Math.min(1, progress.progress / progress.total) : null;
  const state = !result ? badge("running", { kind: "call" }) : badge(result.success ? "done" : "failed", { kind: "call" });
  const head = [h("span", { class: "mono nowrap" }, name(item.tool, 80)), h("span", { class: "grow clip faint mono small" }, brief(item.args)), result ? h("span", { class: "faint tiny number" }, duration(result.metadata.executionTime)) : null, state];
  const limits = limitsOf(item);
  return fold("tool-fold", "tool", head, [
    item.args === null ? null : h("div", { class: "stack tight" }, h("p", { class: "label" }, t("call.arguments")), args(item.args)),
    !result && progress ? h("div", { class: "stack tight" }, share === null ? null : h("div", { class: "bar", role: "progressbar", "aria-label": plain(progress.message) || t("call.running"), "aria-valuenow": Math.round(share * 100), "aria-valuemin": 0, "aria-valuemax": 100 }, h("i", { css: { width: `${share * 100}%` } })), h("p", { class: "small muted" }, name(progress.message, 300))) : null,
    item.lines.length ? h("div", { class: "stack tight" }, h("p", { class: "label" }, t("call.output")), h("div", { class: "log", tabindex: "0", role: "region", "aria-label": t("call.output") }, h("pre", {}, item.leftOut ? h("span", { class: "faint" }, `${t("log.left_out", { n: item.leftOut })}\n`) : null, block(item.lines.join("\n"))))) : null,
    result ? h("div", { class: "stack tight" }, h("p", { class: "label" }, t("call.result")), h("div", { class: "code wrap" }, h("pre", { tabindex: "0", role: "region", "aria-label": t("call.result") }, block(result.output, { most: limits.text ?? 8_000, more: () => { limits.text = (limits.text ?? 8_000) * 4; redraw(item)(); } }))),
      h("div", { class: "row small muted" }, result.metadata.truncated ? t("call.truncated") : null, result.metadata.confirmation ? `${t("approval.title")}: ${word("state", result.metadata.confirmation)}` : null, button(t("action.copy"), () => copy(result.output), { look: "plain small", sign: "copy" }))) : null,
  ]);
}

function subagent(item) {
  const { result } = item;
  const head = [h("span", { class: "nowrap" }, t("subagent.title", { name: plain(item.agent, 60) })), h("span", { class: "grow clip faint small" }, name(item.task, 160)), result ? h("span", { class: "faint tiny number" }, `${duration(result.duration)} · ${dollars(result.cost)}`) : null, badge(!result ? "running" : result.error ? "failed" : "done", { kind: "call" })];
  return fold("tool-fold", "agent", head, [
    h("div", { class: "plain-text" }, block(item.task)),
    result?.error ? notice(block(result.error), "bad") : null,
    result && !result.error ? (typeof result.result === "string" ? h("div", { class: "prose" }, markdown(result.result)) : json(result.result)) : null,
    result ? h("p", { class: "faint small" }, t("tokens", { n: result.tokensUsed })) : null,
  ]);
}

function approval(item) {
  const { request } = item;
  const pending = item.state === "pending" && request.expiresAt > serverNow();
  const deny = (event) => {
    event.preventDefault();
    decide(item, { allow: false, reason: event.currentTarget.elements.reason.value.slice(0, 500) });
  };
  return h("div", { class: `ask ${pending ? "pending" : ""}` },
    h("div", { class: "row apart" }, h("h2", { class: "row" }, icon("approvals"), request.tool ? t("approval.wanted") : t("approval.plan")), pending ? h("span", { class: "faint tiny" }, t("approval.until", { time: clock(request.expiresAt, false) })) : badge(item.state === "pending" ? "expired" : item.state)),
    request.tool ? h("p", { class: "mono" }, name(request.tool)) : h("div", { class: "plain-text" }, block(request.text)),
    request.tool ? args(request.args) : null,
    request.why ? h("p", { class: "small muted" }, word("why", request.why)) : null,
    pending ? h("form", { class: "row", on: { submit: deny } },
      button(t("approval.allow"), () => decide(item, { allow: true, digest: request.digest }), { look: "primary", sign: "check", disabled: item.deciding }),
      button(t("approval.deny"), null, { look: "danger", type: "submit", disabled: item.deciding }),
      h("input", { class: "input grow", name: "reason", placeholder: t("approval.reason"), "aria-label": t("approval.reason"), maxlength: 400, autocomplete: "off" })) : null);
}

const forms = new WeakMap();
function question(item) {
  const { request } = item;
  const pending = item.state === "pending" && request.expiresAt > serverNow();
  if (request.schema && !forms.has(item)) forms.set(item, schemaForm(request.schema, redraw(item)));
  const form = forms.get(item);
  const answerWith = (event) => {
    event.preventDefault();
    const value = form ? form.result() : event.currentTarget.elements.answer.value.trim();
    if (value === null || value === "") redraw(item)();
    else decide(item, { allow: true, answer: form ? JSON.stringify(value) : value.slice(0, 16_000) });
  };
  return h("div", { class: `ask ${pending ? "pending" : ""}` },
    h("div", { class: "row apart" }, h("h2", { class: "row" }, icon("info"), request.plugin ? t("question.of", { name: plain(request.plugin, 60) }) : t("question.title")), pending ? null : badge(item.state === "pending" ? "expired" : item.state)),
    h("div", { class: "prose" }, markdown(request.question)),
    pending ? h("form", { class: "stack", on: { submit: answerWith } },
      request.options.length ? h("div", { class: "row" }, request.options.slice(0, 40).map((option) => button(plain(option, 120), () => decide(item, { allow: true, answer: option }), { disabled: item.deciding }))) : null,
      form ? form.view() : h("textarea", { class: "input", name: "answer", rows: 2, "aria-label": t("question.answer"), placeholder: request.options.length ? t("question.other") : t("question.answer"), maxlength: 16_000 }),
      h("div", { class: "row" }, button(t("question.send"), null, { look: "primary", type: "submit", disabled: item.deciding }), button(t("question.decline"), () => decide(item, { allow: false }), { look: "plain", disabled: item.deciding }))) : null);
}

function remark(item) {
  return notice(block(item.text, { most: 2000 }), item.level === "warn" ? "warn" : "");
}

function error(item) {
  return notice(h("div", { class: "stack tight" }, h("strong", {}, word("reason", item.reason)), h("span", {}, block(item.text, { most: 2000 }))), "bad");
}

function summary(item) {
  return fold("thought-fold", "sessions", h("span", { class: "grow" }, t("summary.title")), h("div", { class: "prose" }, markdown(item.text, limitsOf(item), redraw(item))));
}

/** A proposal that nobody asked for. */
export function ghostView(ghost, { use, dismiss, later, why }) {
  return h("section", { key: ghost.id, class: "ghost card", "aria-label": `${t("ghost.title")}: ${plain(ghost.observation, 80)}` },
    h("div", { class: "row apart" }, h("h2", { class: "row" }, icon("spark"), t("ghost.title"), badge(ghost.confidence, { kind: "confidence", look: ghost.confidence === "high" ? "info" : "" })), button(t("action.dismiss"), dismiss, { look: "plain small", sign: "close", iconOnly: true })),
    h("p", { class: "muted small" }, block(ghost.observation, { most: 1000 })),
    h("div", { class: "prose" }, markdown(ghost.proposal)),
    ghost.noAct ? notice(block(ghost.noAct, { most: 500 })) : null,
    h("div", { class: "row" },
      ghost.actions.filter(({ type }) => type === "dismiss" || !ghost.noAct).slice(0, 6).map((action) => button(plain(action.label, 60), () => use(action), { look: action.type === "approve" ? "primary small" : "small" })),
      later ? button(t("shadow.snooze"), later, { look: "plain small", sign: "schedule", title: t("time.hour") }) : null,
      why ? h("a", { class: "small", href: why }, t("shadow.why")) : null));
}

