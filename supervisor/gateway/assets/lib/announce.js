// What a screen reader is told beside what has the focus. Streamed text is told by sentences, not by letters.

import { h } from "./dom.js";
import { plain } from "./text.js";

const regions = {};
for (const urgency of ["polite", "assertive"]) {
  regions[urgency] = h("div", { class: "visually-hidden", "aria-live": urgency, role: urgency === "polite" ? "status" : "alert" });
  document.body.append(regions[urgency]);
}

export function announce(text, urgency = "polite") {
  const line = h("p", {}, plain(text, 2000));
  regions[urgency].append(line);
  // Long enough for every reader to have taken it; the region stays small.
  setTimeout(() => line.remove(), 10_000);
}

/** Tells text that grows: what is complete as a sentence, at most every two seconds, and the rest at the end. */
export function announceStream() {
  let [told, timer, whole] = [0, 0, ""];
  const tell = (end) => {
    timer = 0;
    const fresh = whole.slice(told);
    const complete = end ? fresh.length : Math.max(fresh.lastIndexOf(". "), fresh.lastIndexOf("\n"), fresh.lastIndexOf("? "), fresh.lastIndexOf("! ")) + 1;
    if (complete <= 0) return;
    announce(fresh.slice(0, complete));
    told += complete;
  };
  return {
    update(text) {
      whole = text;
      if (!timer) timer = setTimeout(tell, 2000, false);
    },
    end() {
      clearTimeout(timer);
      tell(true);
    },
  };
}
