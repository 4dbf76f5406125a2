// Text from models, plugins and people: shown as what it is. Nothing in it moves the cursor, turns the direction of reading, or hides.

import { h } from "./dom.js";
import { t } from "./i18n.js";

/** Colours and cursor movements for terminals. */
const ANSI = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]{0,4096}(?:\u0007|\u001b\\)|[PX^_][^\u001b]{0,4096}\u001b\\|[@-Z\\-_])/g;
/** Control characters except line feed and tab; marks of direction; letters without width that hide text; tags; surrogates alone. */
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]|\p{Surrogate}/gu;
/** Longer lines are cut where text is not wrapped by words. */
const LONGEST_LINE = 4000;

/** The text without terminal sequences, and how many there were. Carriage returns of line ends are dropped. */
export function withoutAnsi(text) {
  let dropped = 0;
  const clean = String(text).replace(/\r\n/g, "\n").replace(ANSI, () => {
    dropped += 1;
    return "";
  });
  return { clean, dropped };
}

/** Text as nodes: what does not show by itself is shown by its number. */
export function visible(text) {
  const nodes = [];
  let last = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (match.index > last) nodes.push(text.slice(last, match.index));
    const code = match[0].codePointAt(0);
    nodes.push(h("span", { class: "control-char", title: t("text.hidden_character") }, `U+${code.toString(16).toUpperCase().padStart(4, "0")}`));
    last = match.index + match[0].length;
    if (nodes.length > 2000) {
      nodes.push(h("span", { class: "faint" }, t("text.more_hidden")));
      return nodes;
    }
  }
  if (last < text.length) nodes.push(text.slice(last));
  return nodes;
}

/** A name, an id, a title: one line, of bounded length, that does not change the direction of what stands beside it. */
export function name(text, most = 200) {
  const { clean } = withoutAnsi(text ?? "");
  const line = clean.replace(/\s+/g, " ").trim();
  const cut = cutAt(line, most);
  return h("bdi", cut.length < line.length ? { title: cutAt(line, 2000) } : {}, visible(cut), cut.length < line.length ? "…" : "");
}

/** The same as a string, for attributes, titles and announcements. */
export function plain(text, most = 200) {
  const { clean } = withoutAnsi(text ?? "");
  const line = clean.replace(HIDDEN, "").replace(/\s+/g, " ").trim();
  const cut = cutAt(line, most);
  return cut.length < line.length ? `${cut}…` : cut;
}

/** The beginning of a text, at a whole letter. */
export function cutAt(text, most) {
  if (text.length <= most) return text;
  const high = text.charCodeAt(most - 1);
  return text.slice(0, high >= 0xd800 && high <= 0xdbff ? most - 1 : most);
}

/** Text of several lines as it is, bounded; `more` is called by a button that shows the rest. */
export function block(text, { most = 20_000, more = null } = {}) {
  const { clean, dropped } = withoutAnsi(text ?? "");
  const cut = cutAt(clean, most);
  const lines = cut.split("\n").map((line) => (line.length > LONGEST_LINE ? `${cutAt(line, LONGEST_LINE)} … ${t("text.line_cut", { n: line.length - LONGEST_LINE })}` : line));
  const left = clean.length - cut.length;
  return [
    visible(lines.join("\n")),
    left > 0 ? [h("span", { class: "faint" }, `\n${t("text.left_out", { n: left })} `), more ? h("button", { type: "button", class: "link-button", on: { click: more } }, t("action.show_more")) : null] : null,
    dropped > 0 ? h("span", { class: "faint" }, `\n${t("text.terminal_sequences", { n: dropped })}`) : null,
  ];
}
