// Where the viewer is: the fragment of the address, `#/plugins/NAME?state=failed`. So that a filter, an order and an opened item are links.

import { store } from "./store.js";

/** Reads an address. */
export function parse(hash) {
  const [route, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const parts = route.split("/").filter(Boolean).map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return { parts, query: Object.fromEntries(new URLSearchParams(query)) };
}

/** Writes an address. */
export function href(parts, query = {}) {
  const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== ""));
  const text = String(asked);
  return `#/${parts.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

export const place = store(parse(location.hash));
addEventListener("hashchange", () => place.set(() => parse(location.hash)));

export function go(parts, query) {
  location.hash = href(parts, query);
}

/** Changes the query of this place, without an entry in the history. */
export function setQuery(change) {
  const { parts, query } = place.get();
  history.replaceState(null, "", href(parts, { ...query, ...change }));
  place.set(() => parse(location.hash));
}
