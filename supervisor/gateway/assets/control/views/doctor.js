// What Talon finds wrong with its own set-up, each with the fix.

import { request, serves } from "../../lib/api.js";
import { h } from "../../lib/dom.js";
import { micros } from "../../lib/format.js";
import { t } from "../../lib/i18n.js";
import { resource } from "../../lib/resource.js";
import { block, name } from "../../lib/text.js";
import { codeBlock } from "../../ui/code.js";
import { badge, button, card, facts, shown, unavailable } from "../../ui/parts.js";
import { sources } from "../attention.js";
import { head } from "../page.js";

export function open({ redraw }) {
  const end = sources.health.subscribe(redraw);
  const list = serves("GET", "/api/doctor") ? resource((signal) => request("GET", "/api/doctor", { signal })) : null;
  list?.subscribe(redraw);
  const draw = () => [
    head(t("view.doctor"), { text: t("doctor.text"), actions: list ? button(t("doctor.again"), list.reload, { sign: "retry" }) : null }),
    h("div", { class: "stack wide" },
      shown(sources.health.get(), health, sources.health.reload),
      list ? shown(list.get(), ({ items }) => h("div", { class: "stack" }, items.map((finding) => h("article", { class: "card finding", key: `${finding.section} ${finding.check}` }, h("div", { class: "body stack tight" }, h("div", { class: "row" }, badge(finding.state), h("h2", {}, name(finding.check, 160))), h("p", { class: "muted" }, block(finding.message, { most: 2000 })), finding.why ? h("p", { class: "small" }, block(finding.why, { most: 2000 })) : null, finding.fix ? codeBlock(finding.fix, t("doctor.fix"), { wrap: true }) : null)))), list.reload) : h("div", { class: "card" }, unavailable(t("doctor.findings")))),
  ];
  return { draw, end: () => { end(); list?.end(); } };
}

function health(data) {
  const part = (one) => (one ? h("span", { class: "row tight" }, badge(one.status), h("span", { class: "faint number" }, micros(one.latencyMs * 1000))) : null);
  return card(t("doctor.health"), facts([
    [t("doctor.gateway"), h("span", { class: "row tight" }, badge(data.status), data.version ? h("span", { class: "faint" }, name(data.version, 40)) : null)],
    [t("doctor.host"), part(data.host)],
    [t("doctor.agent"), part(data.agent)],
  ]));
}
