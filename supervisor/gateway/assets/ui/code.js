// Code and structured values.

import { h } from "../lib/dom.js";
import { t } from "../lib/i18n.js";
import { cutAt, plain, visible, withoutAnsi } from "../lib/text.js";
import { toast } from "./toast.js";
import { button } from "./parts.js";

/** Longer code is cut; copying takes all of it. */
const LONGEST_CODE = 40_000;

/** Puts a text into the clipboard. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast(t("copied"));
  } catch {
    toast(t("copy_failed"), { look: "bad" });
  }
}

/** A block of code with its language and a button that copies it. `region`: what it is called where several have the same label. */
export function codeBlock(text, label = "", { wrap = false, region = null } = {}) {
  const { clean } = withoutAnsi(text);
  const cut = cutAt(clean, LONGEST_CODE);
  const named = plain(label, 40);
  return h(
    "div",
    { class: `code${wrap ? " wrap" : ""}` },
    h("header", {}, h("span", {}, named || t("code")), button(t("action.copy"), () => copy(text), { look: "plain small", sign: "copy" })),
    h("pre", { tabindex: "0", role: "region", "aria-label": region ? plain(region, 160) : named ? t("code_in", { language: named }) : t("code") }, h("code", {}, visible(cut), cut.length < clean.length ? h("span", { class: "faint" }, `\n${t("text.left_out", { n: clean.length - cut.length })}`) : null)),
  );
}

/** A value of JSON, written out. */
export function json(value, label = "JSON", region = null) {
  let text;
  try {
    text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  } catch {
    text = String(value);
  }
  return codeBlock(text ?? "null", label, { wrap: true, region });
}

/** Arguments of a call: names and values, a line each; long ones as code. */
export function args(value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return json(value);
  const entries = Object.entries(value);
  if (entries.length === 0) return h("p", { class: "muted small" }, t("args.none"));
  if (entries.length > 40 || entries.some(([, entry]) => entry !== null && typeof entry === "object")) return json(value);
  const isLong = ([, entry]) => String(entry).length > 160 || String(entry).includes("\n");
  const short = entries.filter((entry) => !isLong(entry));
  const named = short.length ? h("dl", { class: "facts args" }, short.map(([key, entry]) => [h("dt", { class: "mono" }, visible(plain(key, 80))), h("dd", { class: "mono plain-text" }, visible(String(entry)))])) : null;
  return h("div", { class: "stack" }, named, entries.filter(isLong).map(([key, entry]) => codeBlock(String(entry), key, { wrap: true })));
}

/** The lines that differ between two texts. Beyond this many lines the two are shown one after the other. */
const MOST_DIFF_LINES = 800;

export function diff(before, after, label = t("diff")) {
  const [old, fresh] = [before.split("\n"), after.split("\n")];
  const lines = old.length + fresh.length > MOST_DIFF_LINES ? [...old.map((line) => ["-", line]), ...fresh.map((line) => ["+", line])] : compare(old, fresh);
  return h("div", { class: "code wrap" }, h("pre", { tabindex: "0", role: "region", "aria-label": label }, lines.slice(0, MOST_DIFF_LINES * 2).map(([sign, line]) => h("span", { class: sign === "+" ? "diff-add" : sign === "-" ? "diff-remove" : "" }, `${sign} `, visible(line), sign === " " ? "\n" : ""))));
}

function compare(old, fresh) {
  const table = Array.from({ length: old.length + 1 }, () => new Uint16Array(fresh.length + 1));
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = fresh.length - 1; j >= 0; j -= 1) table[i][j] = old[i] === fresh[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
  }
  const lines = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < fresh.length) {
    if (i < old.length && j < fresh.length && old[i] === fresh[j]) {
      lines.push([" ", old[i]]);
      i += 1;
      j += 1;
    } else if (j >= fresh.length || (i < old.length && table[i + 1][j] >= table[i][j + 1])) {
      lines.push(["-", old[i++]]);
    } else {
      lines.push(["+", fresh[j++]]);
    }
  }
  return lines;
}
