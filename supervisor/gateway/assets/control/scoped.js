// What is read for a scope, which the query of the place names: whose things a view shows. Another link changes it and leaves the view open.

import { request } from "../lib/api.js";
import { resource } from "../lib/resource.js";

/** Reads by `load(query, signal)`. `query()` is the scope of now: what was read, or failed, for another one is shown nowhere. */
export function scoped(query, load, { every = 0 } = {}) {
  const scope = () => JSON.stringify(query());
  let [asked, failed] = [null, null];
  const inner = resource(async (signal) => {
    const mine = scope();
    asked = mine;
    try {
      return { scope: mine, data: await load(query(), signal) };
    } catch (error) {
      if (!signal.aborted) failed = mine;
      throw error;
    }
  }, { every });
  return {
    ...inner,
    get() {
      const { data, error, at } = inner.get();
      const now = scope();
      const own = error && failed === now ? error : null;
      if (data?.scope === now) return { status: "ready", data: data.data, error: own, at };
      return { status: own ? "failed" : "loading", data: null, error: own, at };
    },
    /** Reads again if the scope is another one than what was asked for last. Views call it as they draw. */
    follow() {
      if (asked !== scope()) inner.reload();
    },
  };
}

/** A list that the server gives page by page, the latest first. Each reading reads all pages that the viewer has asked for, so that what
 *  changes or moves from one page to the next is neither kept nor lost. `limit` is asked of each page. */
export function paged(target, query, limit, { every = 0 } = {}) {
  let [pages, of] = [1, null];
  const list = scoped(query, async (asked, signal) => {
    const scope = JSON.stringify(asked);
    if (of !== scope) [pages, of] = [1, scope];
    let [items, cursor, read] = [[], undefined, 0];
    do {
      const page = await request("GET", target, { query: { ...asked, limit, cursor }, signal });
      items = [...items, ...page.items];
      cursor = page.nextCursor;
      read += 1;
    } while (cursor && read < pages);
    return { items, nextCursor: cursor, pages: read };
  }, { every });
  return {
    ...list,
    items: () => list.get().data?.items ?? [],
    /** Reads one page further; null if there is none. Pressed twice it is the same page. */
    more() {
      const { data } = list.get();
      if (!data?.nextCursor) return null;
      return () => {
        pages = data.pages + 1;
        list.reload();
      };
    },
  };
}
