// Markdown of models as elements: headings, lists, quotes, tables, code, emphasis, links. No HTML, no pictures from elsewhere. Every
// text has an end here: depth, blocks, items and the work for one line are bounded.

import { h, safeUrl } from "../lib/dom.js";
import { t } from "../lib/i18n.js";
import { codeBlock } from "./code.js";
import { cutAt, visible, withoutAnsi } from "../lib/text.js";

/** Blocks, items of a list, rows of a table that are shown at once; a button shows as many more. */
const MOST_BLOCKS = 400;
const MOST_ITEMS = 200;
/** How deep quotes, lists and emphasis go; deeper is shown as it is written. */
const DEEPEST = 8;
/** Longer paragraphs are shown without emphasis and links, cut. */
const LONGEST_PARAGRAPH = 20_000;
/** A whole text beyond it is cut, with a button for more. */
const LONGEST_TEXT = 200_000;

/** The elements of a text. A block that did not change keeps its element when the text grows. `limits` remembers what was opened. */
export function markdown(text, limits = {}, redraw = () => {}) {
  const { clean, dropped } = withoutAnsi(text);
  const most = limits.text ?? LONGEST_TEXT;
  const context = { limits, redraw };
  const blocks = split(cutAt(clean, most).split("\n"));
  const notes = [];
  const more = (key, step, label) => {
    notes.push(h("button", { type: "button", class: "button small", on: { click: () => { limits[key] = (limits[key] ?? step) + step; redraw(); } } }, label));
  };
  const shown = limits.blocks ?? MOST_BLOCKS;
  if (blocks.length > shown) more("blocks", MOST_BLOCKS, t("text.more_blocks", { n: blocks.length - shown }));
  if (clean.length > most) more("text", LONGEST_TEXT, t("text.left_out", { n: clean.length - most }));
  if (dropped) notes.push(h("p", { class: "faint small" }, t("text.terminal_sequences", { n: dropped })));
  const items = blocks.slice(0, shown).map((block, place) => {
    const memo = `${block.kind}\u0000${limits[`items ${place}`] ?? 0}\u0000${block.lines.join("\n")}`;
    return h("div", { key: `b${place}`, memo, class: "block" }, () => element(block, context, 0, `items ${place}`));
  });
  return [items, notes];
}

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`\n]*)$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const ITEM = /^(\s{0,9})([-*+]|\d{1,9}[.)])\s+(.*)$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const DELIMITER = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

/** Lines to blocks. */
function split(lines) {
  const blocks = [];
  let at = 0;
  const take = (kind, extra = {}) => {
    const block = { kind, lines: [], ...extra };
    blocks.push(block);
    return block;
  };
  while (at < lines.length) {
    const line = lines[at];
    if (line.length < 400 && FENCE.test(line)) {
      const [, fence, info] = line.match(FENCE);
      const block = take("code", { info: info.trim() });
      at += 1;
      while (at < lines.length && !isFenceEnd(lines[at], fence)) block.lines.push(lines[at++]);
      at += 1;
    } else if (!line.trim()) {
      at += 1;
    } else if (line.length < 400 && RULE.test(line)) {
      take("rule");
      at += 1;
    } else if (line.length < 2000 && HEADING.test(line)) {
      const [, marks, text] = line.match(HEADING);
      take("heading", { level: marks.length }).lines.push(text);
      at += 1;
    } else if (QUOTE.test(line)) {
      const block = take("quote");
      while (at < lines.length && lines[at].trim() && QUOTE.test(lines[at])) block.lines.push(lines[at++].match(QUOTE)[1]);
    } else if (ITEM.test(line)) {
      const block = take("list");
      while (at < lines.length && (lines[at].trim() ? ITEM.test(lines[at]) || /^\s{2,}/.test(lines[at]) : ITEM.test(lines[at + 1] ?? "") || /^\s{2,}\S/.test(lines[at + 1] ?? ""))) block.lines.push(lines[at++]);
    } else if (line.includes("|") && lines[at + 1]?.length < 2000 && lines[at + 1].includes("-") && DELIMITER.test(lines[at + 1])) {
      const block = take("table");
      while (at < lines.length && lines[at].includes("|")) block.lines.push(lines[at++]);
    } else {
      const block = take("paragraph");
      while (at < lines.length && lines[at].trim() && (block.lines.length === 0 || !interrupts(lines[at]))) block.lines.push(lines[at++]);
    }
  }
  return blocks;
}

function isFenceEnd(line, fence) {
  const trimmed = line.trim();
  return trimmed.length >= fence.length && trimmed.length < 200 && trimmed === fence[0].repeat(trimmed.length);
}

function interrupts(line) {
  return line.length < 2000 && (FENCE.test(line) || HEADING.test(line) || QUOTE.test(line) || ITEM.test(line) && /^\s{0,3}([-*+]|1[.)])\s/.test(line) || RULE.test(line));
}

function element(block, context, depth, place) {
  switch (block.kind) {
    case "code":
      return codeBlock(block.lines.join("\n"), block.info.split(/\s/)[0]);
    case "rule":
      return h("hr");
    case "heading":
      // The page has headings of its own above these.
      return h(`h${Math.min(4, block.level + 1)}`, {}, inline(block.lines[0], 0));
    case "quote":
      return h("blockquote", { dir: "auto" }, nested(block.lines, context, depth));
    case "list":
      return list(block.lines, context, depth, place);
    case "table":
      return table(block.lines, context, place);
    default:
      return h("p", { dir: "auto" }, inline(block.lines.join("\n"), 0));
  }
}

function nested(lines, context, depth) {
  if (depth >= DEEPEST) return h("p", { class: "plain-text" }, visible(cutAt(lines.join("\n"), LONGEST_PARAGRAPH)));
  return split(lines).slice(0, MOST_BLOCKS).map((block) => element(block, context, depth + 1, null));
}

/** The first `MOST_ITEMS` of these, and a button for more. Only outermost lists and tables remember how many were opened. */
function bounded(items, context, place, make) {
  const most = (place && context.limits[place]) || MOST_ITEMS;
  const left = items.length - most;
  const more = () => {
    context.limits[place] = most + MOST_ITEMS * 5;
    context.redraw();
  };
  const rest = left <= 0 ? null : place ? h("button", { type: "button", class: "button small", on: { click: more } }, t("text.more_items", { n: left })) : h("span", { class: "faint" }, t("text.more_items", { n: left }));
  return { shown: items.slice(0, most).map(make), rest };
}

function list(lines, context, depth, place) {
  const items = [];
  const indent = lines[0].match(ITEM)[1].length;
  for (const line of lines) {
    const match = line.match(ITEM);
    if (match && match[1].length <= indent + 1) items.push({ mark: match[2], lines: [match[3]] });
    else items.at(-1)?.lines.push(line.slice(Math.min(line.search(/\S|$/), indent + 2)));
  }
  const first = Number.parseInt(items[0].mark, 10);
  const { shown, rest } = bounded(items, context, place, ({ lines: inner }) => {
    const task = inner[0].match(/^\[([ xX])\]\s+(.*)$/);
    if (task) inner[0] = task[2];
    const box = task ? (task[1] === " " ? "☐ " : "☑ ") : "";
    if (inner.length === 1) return h("li", { dir: "auto" }, box, inline(inner[0], 0));
    const start = inner.findIndex((line, index) => index > 0 && (!line.trim() || ITEM.test(line) || FENCE.test(line) || QUOTE.test(line)));
    const head = start < 0 ? inner : inner.slice(0, start);
    return h("li", { dir: "auto" }, box, inline(head.join("\n"), 0), start < 0 ? null : nested(inner.slice(start), context, depth + 1));
  });
  const whole = Number.isNaN(first) ? h("ul", {}, shown) : h("ol", { start: first }, shown);
  return rest ? [whole, rest] : whole;
}

function table(lines, context, place) {
  const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").slice(0, 30).map((cell) => cell.trim());
  const head = cells(lines[0]);
  const { shown, rest } = bounded(lines.slice(2), context, place, (line) => h("tr", {}, cells(line).slice(0, head.length).map((cell) => h("td", { dir: "auto" }, inline(cell, 0)))));
  const whole = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("text.table") }, h("table", {}, h("thead", {}, h("tr", {}, head.map((cell) => h("th", { scope: "col" }, inline(cell, 0))))), h("tbody", {}, shown)));
  return rest ? [whole, rest] : whole;
}

/** Marks in a paragraph, by what opens them. */
const MARKS = [["**", "strong"], ["__", "strong"], ["~~", "s"], ["*", "em"], ["_", "em"]];
const AUTOLINK = /^https?:\/\/[^\s<>"'`|\\]{3,2000}/;

function inline(text, depth) {
  if (text.length > LONGEST_PARAGRAPH) {
    return [visible(cutAt(text, LONGEST_PARAGRAPH)), h("span", { class: "faint" }, ` … ${t("text.line_cut", { n: text.length - LONGEST_PARAGRAPH })}`)];
  }
  const nodes = [];
  /** What has no end from some place on is not searched for again: the work stays linear. */
  const missing = new Set();
  const find = (needle, from) => {
    if (missing.has(needle)) return -1;
    const found = text.indexOf(needle, from);
    if (found < 0) missing.add(needle);
    return found;
  };
  let [at, plainFrom] = [0, 0];
  const flush = (end) => {
    if (end > plainFrom) nodes.push(...withBreaks(text.slice(plainFrom, end)));
  };
  const put = (node, next) => {
    flush(at);
    nodes.push(node);
    at = next;
    plainFrom = next;
  };
  while (at < text.length) {
    const char = text[at];
    if (char === "\\" && /[\\`*_{}[\]()#+\-.!~|>]/.test(text[at + 1] ?? "")) {
      flush(at);
      plainFrom = at + 1;
      at += 2;
    } else if (char === "`") {
      const run = text.slice(at).match(/^`{1,10}/)[0];
      const end = find(run, at + run.length);
      if (end > 0) put(h("code", {}, visible(text.slice(at + run.length, end).replace(/^ (.+) $/s, "$1"))), end + run.length);
      else at += run.length;
    } else if (char === "[" || (char === "!" && text[at + 1] === "[")) {
      const link = depth < DEEPEST ? linkAt(text, char === "!" ? at + 1 : at, find, depth) : null;
      if (link) put(link.node, link.end);
      else at += 1;
    } else if ((char === "*" || char === "_" || char === "~") && depth < DEEPEST) {
      const mark = MARKS.find(([open]) => text.startsWith(open, at) && /\S/.test(text[at + open.length] ?? " ") && !(open[0] === "_" && /\w/.test(text[at - 1] ?? " ")));
      const end = mark ? find(mark[0], at + mark[0].length + 1) : -1;
      if (end > 0 && /\S/.test(text[end - 1])) put(h(mark[1], {}, inline(text.slice(at + mark[0].length, end), depth + 1)), end + mark[0].length);
      else at += mark ? mark[0].length : 1;
    } else if (char === "h" && (text.startsWith("http://", at) || text.startsWith("https://", at)) && !/\w/.test(text[at - 1] ?? " ")) {
      const found = text.slice(at, at + 2048).match(AUTOLINK)?.[0].replace(/[.,;:!?)\]*]+$/, "");
      if (found) put(anchor(found, visible(found), false), at + found.length);
      else at += 1;
    } else {
      at += 1;
    }
  }
  flush(text.length);
  return nodes;
}

function withBreaks(text) {
  return text.split("\n").flatMap((line, index) => [index > 0 ? h("br") : null, ...visible(line)]);
}

function linkAt(text, at, find, depth) {
  const close = find("](", at);
  if (close < 0 || close - at > 1000) return null;
  const end = text.indexOf(")", close + 2);
  if (end < 0 || end - close > 3000) return null;
  const label = text.slice(at + 1, close);
  const target = text.slice(close + 2, end).trim().replace(/^<|>$/g, "").split(/\s/)[0];
  return { node: anchor(target, inline(label, depth + 1), true, label), end: end + 1 };
}

/** A link with the host that it goes to; what is not http, https or mailto is shown as text. */
function anchor(target, content, named, label = "") {
  const url = safeUrl(target);
  if (!url) return h("span", {}, content, " ", h("code", {}, visible(cutAt(target, 300))));
  const where = url.protocol === "mailto:" ? "mailto" : url.host;
  const host = named && !label.includes(where) ? h("span", { class: "host" }, ` (${where})`) : null;
  return h("a", { href: url.href, target: "_blank", rel: "noopener noreferrer nofollow", title: cutAt(url.href, 500) }, content, host);
}
