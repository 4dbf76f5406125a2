// Icons, drawn on 16 by 16. They stand beside words, or their button has a name.

import { s } from "../lib/dom.js";

const PATHS = {
  overview: "M2.5 8.5 8 3l5.5 5.5M4 7.5V13h8V7.5",
  plugins: "M6 2v3M10 2v3M4 5h8v3a4 4 0 0 1-8 0zM8 12v2",
  calls: "M2.5 8h2.5l2-4.5 3 9 1.8-4.5h1.7",
  approvals: "M8 1.8 13 4v4c0 3-2 5-5 6.2C5 13 3 11 3 8V4zM5.8 8l1.6 1.6L10.4 6.5",
  sessions: "M2.5 3.5h11v7.5H7L4 13.5V11H2.5z",
  shadow: "M8 2l1.4 4.6L14 8l-4.6 1.4L8 14l-1.4-4.6L2 8l4.6-1.4z",
  configuration: "M3 4.5h6M12 4.5h1M3 8h1M7 8h6M3 11.5h6M12 11.5h1M10.5 3v3M5.5 6.5v3M10.5 10v3",
  audit: "M4 2h6l2.5 2.5V14H4zM6 7h4M6 9.5h4M6 12h2",
  doctor: "M8 13.5S2.5 10.3 2.5 6.4A2.9 2.9 0 0 1 8 5a2.9 2.9 0 0 1 5.5 1.4c0 3.9-5.5 7.1-5.5 7.1zM4.8 8h1.7l1-2 1.4 3.5.8-1.5h1.6",
  schedule: "M8 2.5a5.5 5.5 0 1 0 .01 0zM8 5v3.2l2 1.3",
  notifications: "M4 11V7a4 4 0 0 1 8 0v4l1 1.2H3zM6.8 13.8h2.4",
  extensions: "M3 6h3V4.7a1.5 1.5 0 1 1 3 0V6h3.5v3h-1a1.5 1.5 0 1 0 0 3h1v1.5H3z",
  memory: "M5.5 2.5h5v11l-2.5-2-2.5 2z",
  costs: "M8 2.5v11M10.8 4.8C10 3.9 9 3.7 8 3.7c-1.6 0-2.8.7-2.8 2 0 3 5.7 1.5 5.7 4.5 0 1.4-1.3 2.1-2.9 2.1-1.2 0-2.2-.4-3-1.3",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  close: "M4 4l8 8M12 4l-8 8",
  search: "M7 2.8a4.2 4.2 0 1 0 .01 0zM10.2 10.2l3.3 3.3",
  plus: "M8 3v10M3 8h10",
  send: "M8 13V3.5M3.8 7.5 8 3.3l4.2 4.2",
  stop: "M4.5 4.5h7v7h-7z",
  copy: "M5.5 5.5v-2h7v7h-2M3.5 5.5h7v7h-7z",
  check: "M3 8.5l3.2 3.2L13 4.8",
  warning: "M8 2.5l6 10.8H2zM8 6.5v3M8 11.4v.1",
  info: "M8 2.2a5.8 5.8 0 1 0 .01 0zM8 7.2v3.8M8 5v.1",
  offline: "M2 6.5a9 9 0 0 1 12 0M4.2 9a6 6 0 0 1 7.6 0M6.4 11.4a2.6 2.6 0 0 1 3.2 0M2.5 2.5l11 11",
  lock: "M4 7h8v6.5H4zM5.8 7V5a2.2 2.2 0 0 1 4.4 0v2",
  empty: "M2.5 9 4 3.5h8L13.5 9v4h-11zM2.5 9H6l.8 1.6h2.4L10 9h3.5",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  trash: "M3 4.5h10M6 4.5V3h4v1.5M4.2 4.5l.6 9h6.4l.6-9",
  pencil: "M3 13l.6-2.8L10.8 3l2.2 2.2-7.2 7.2z",
  retry: "M12.8 8a4.8 4.8 0 1 1-1.5-3.5M12.8 2.5v2.6h-2.6",
  attach: "M12.5 7.5l-5 5a3 3 0 0 1-4.3-4.3l5.5-5.5a2 2 0 0 1 2.9 2.9l-5.4 5.3a1 1 0 0 1-1.4-1.4L9.4 5",
  download: "M8 2.5v7.5M4.8 7 8 10.2 11.2 7M3 13h10",
  tool: "M9.5 3.2a3.2 3.2 0 0 0-.4 3.6L3 12.9l.9.9 6.1-6a3.2 3.2 0 0 0 4-4.1L12 5.6l-1.6-.4L10 3.6z",
  thought: "M8 2.5c3 0 5.3 1.8 5.3 4.2S11 11 8 11H7l-2.5 2v-2.4C3.3 9.8 2.7 8.5 2.7 6.7 2.7 4.3 5 2.5 8 2.5z",
  agent: "M3.5 6h9v6.5h-9zM8 3.2V6M6 8.8v.4M10 8.8v.4M8 2.6v.1",
  spark: "M8 2l1.4 4.6L14 8l-4.6 1.4L8 14l-1.4-4.6L2 8l4.6-1.4z",
  keyboard: "M2 4.5h12v7H2zM4.5 7h.01M7 7h.01M9.5 7h.01M12 7h.01M5 9.5h6",
  sun: "M8 5.2a2.8 2.8 0 1 0 .01 0zM8 1.8v1M8 13.2v1M1.8 8h1M13.2 8h1M3.6 3.6l.7.7M11.7 11.7l.7.7M3.6 12.4l.7-.7M11.7 4.3l.7-.7",
  back: "M10 3.5 5.5 8l4.5 4.5",
  play: "M5 3.5v9l7.5-4.5z",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  down: "M3.5 6 8 10.5 12.5 6",
};

export function icon(name) {
  return s("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true", focusable: "false" }, s("path", { d: PATHS[name] ?? PATHS.info }));
}

export function names() {
  return Object.keys(PATHS);
}
