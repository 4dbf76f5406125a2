// The page /: the frame around the views, and which of them is open.

import { connection, hasScope } from "../lib/api.js";
import { announce } from "../lib/announce.js";
import { boot, connectionBar, preferences } from "../ui/boot.js";
import { h, show } from "../lib/dom.js";
import { clockSkew, duration } from "../lib/format.js";
import { t } from "../lib/i18n.js";
import { shortcut } from "../lib/keys.js";
import { go, href, place } from "../lib/router.js";
import { onceAFrame, store } from "../lib/store.js";
import { icon } from "../ui/icons.js";
import { button, failure, linkButton, loading, notice, state } from "../ui/parts.js";
import { attention, watchAttention } from "./attention.js";
import { watchSamples, watchSeries } from "./samples.js";

/** The views by group, with the key that opens each after `g`. `scope` is what one needs to see anything in it. */
const GROUPS = [
  ["now", [["overview", "o"], ["approvals", "a"], ["calls", "c"], ["sessions", "s"], ["shadow", "h"]]],
  ["system", [["plugins", "p"], ["extensions", "x"], ["schedule", "j"], ["notifications", "n"], ["memory", "m"], ["costs", "$"]]],
  ["administration", [["configuration", "e"], ["audit", "l"], ["doctor", "d"]]],
];
const VIEWS = GROUPS.flatMap(([, views]) => views.map(([name]) => name));

const frame = store({ drawer: false });
let current = null;

function viewName() {
  return place.get().parts[0] ?? "overview";
}

/** Opens the view of this place, unless it is open. One view has one module. */
async function openView(redraw) {
  const { parts } = place.get();
  const address = parts.join("/");
  if (current?.address === address) return redraw();
  current?.view?.end?.();
  const mine = { address, view: null, error: null };
  current = mine;
  const name = viewName();
  try {
    if (!VIEWS.includes(name)) throw Object.assign(new Error(t("not_found.page")), { status: 404 });
    const module = await import(`./views/${name}.js`);
    if (current !== mine) return;
    mine.view = module.open({ parts: parts.slice(1), redraw, attention });
    announce(t(`view.${name}`));
  } catch (error) {
    // A module that is not there any more: the gateway was replaced by another version.
    mine.error = error.status ? error : Object.assign(new Error(t("error.version")), { kind: "version" });
  }
  redraw();
  document.getElementById("main")?.focus({ preventScroll: true });
  scrollTo(0, 0);
}

function navigation() {
  const here = viewName();
  const counts = attention.get().counts;
  return h("nav", { class: "nav", "aria-label": t("navigation"), id: "navigation" },
    h("div", { class: "nav-head" }, h("a", { class: "brand", href: "#/overview" }, "Talon"), button(t("action.close"), () => frame.set({ drawer: false }), { look: "plain small nav-close", sign: "close", iconOnly: true })),
    GROUPS.map(([group, views]) => h("section", { key: group }, h("h2", {}, t(`group.${group}`)), h("ul", {}, views.map(([name]) => h("li", {}, h("a", { href: href([name]), "aria-current": name === here ? "page" : null, on: { click: () => frame.set({ drawer: false }) } }, icon(name), h("span", { class: "grow" }, t(`view.${name}`)), counts[name] ? h("span", { class: `count ${counts[name].look}`, title: counts[name].title ?? t("attention.count", { n: counts[name].n }) }, counts[name].n) : null)))))),
    h("div", { class: "nav-foot" }, linkButton(t("page.chat"), "/chat", { sign: "sessions", look: "small" }), h("div", { class: "row tight" }, preferences()), h("p", { class: "faint tiny clip", title: connection.get().subject }, connection.get().subject)));
}

function content() {
  if (!current || (!current.view && !current.error)) return loading(6);
  if (current.error?.kind === "version") return state("retry", t("error.version"), null, button(t("action.reload"), () => location.reload(), { look: "primary" }));
  if (current.error) return failure(current.error);
  try {
    return current.view.draw();
  } catch (error) {
    console.error(error);
    return failure(error);
  }
}

function page() {
  const skew = clockSkew();
  return [
    h("a", { class: "skip", href: "#main", on: { click: (event) => { event.preventDefault(); document.getElementById("main").focus(); } } }, t("skip")),
    connectionBar(),
    h("div", { class: `control${frame.get().drawer ? " drawer" : ""}` },
      navigation(),
      h("div", { class: "veil", on: { click: () => frame.set({ drawer: false }) } }),
      h("div", { class: "side-of" },
        h("header", { class: "top" }, button(t("navigation"), () => frame.set({ drawer: true }), { look: "plain", sign: "menu", iconOnly: true }), h("span", { class: "brand" }, "Talon")),
        h("main", { id: "main", tabindex: "-1" }, skew ? notice(t("clock.wrong", { by: duration(Math.abs(skew)) }), "warn") : null, content()))),
  ];
}

/** For who may neither operate nor talk. */
function forbiddenPage() {
  return h("main", { class: "signin" }, h("h1", { class: "visually-hidden" }, "Talon"), state("lock", t("forbidden.title"), t("forbidden.control")));
}

boot((root) => {
  if (!hasScope("operate")) {
    // A link of `talon gateway open` leads here; who may only talk is at home there.
    if (hasScope("chat")) location.replace("/chat");
    else show(root, forbiddenPage());
    return;
  }
  const draw = onceAFrame(() => {
    document.title = `${VIEWS.includes(viewName()) ? t(`view.${viewName()}`) : ""} · Talon`;
    show(root, page());
  });
  for (const [name, key] of GROUPS.flatMap(([, views]) => views)) shortcut(`g ${key}`, t("keys.open", { view: t(`view.${name}`) }), () => go([name]));
  shortcut("/", t("keys.filter"), () => document.getElementById("search")?.focus());
  shortcut("Escape", t("keys.back"), () => {
    const { parts } = place.get();
    if (frame.get().drawer) frame.set({ drawer: false });
    else if (parts.length > 1) go(parts.slice(0, 1));
    else return false;
  });
  connection.subscribe(draw);
  frame.subscribe(draw);
  attention.subscribe(draw);
  place.subscribe(() => openView(draw));
  watchSamples(draw);
  watchSeries(draw);
  watchAttention();
  openView(draw);
  setInterval(draw, 30_000);
});
