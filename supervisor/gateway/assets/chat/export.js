// A session as a file: Markdown for people, JSON for programs. Made in the browser.

import { h } from "../lib/dom.js";
import { dateTime } from "../lib/format.js";
import { t } from "../lib/i18n.js";
import { openDialog } from "../ui/dialog.js";
import { button, notice } from "../ui/parts.js";
import { failed } from "../ui/toast.js";
import { allMessages } from "./state.js";

/** A fence that is longer than any in the text. */
function fence(text) {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  return "`".repeat(longest + 1);
}

export function asMarkdown(session) {
  const lines = [`# ${session.title.replaceAll("\n", " ") || t("sessions.untitled")}`, "", `${session.id} · ${dateTime(session.metadata.createdAt)}`, ""];
  for (const message of session.messages) {
    lines.push(`## ${t(`role.${message.role}`)} · ${dateTime(message.timestamp)}`, "");
    if (message.content) lines.push(message.content, "");
    for (const call of message.toolCalls ?? []) {
      const text = JSON.stringify(call.args, null, 2);
      lines.push(`${t("call.title")}: \`${call.tool}\``, "", `${fence(text)}json`, text, fence(text), "");
    }
    for (const result of message.toolResults ?? []) lines.push(`${t("call.result")}: \`${result.tool}\``, "", fence(result.output), result.output, fence(result.output), "");
  }
  return lines.join("\n");
}

function save(text, type, name) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const anchor = h("a", { href: url, download: name });
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

export function openExport(id) {
  const run = (kind) => async () => {
    try {
      const session = await allMessages(id);
      if (kind === "json") save(JSON.stringify(session, null, 2), "application/json", `${id}.json`);
      else save(asMarkdown(session), "text/markdown", `${id}.md`);
    } catch (error) {
      failed(error);
    }
  };
  openDialog(t("export.title"), () => [notice(t("export.text")), h("div", { class: "actions" }, button("Markdown", run("markdown"), { sign: "download" }), button("JSON", run("json"), { sign: "download" }))]);
}
