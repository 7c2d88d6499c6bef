// The runs that the list shows: which ones, how many, and how they change.

import { call } from "/components/http.js";

const PAGE = 50;
const MOST = 200;

export class Listing {
  #wanted = PAGE;

  /** `filters` are the parameters of the address: `site` and `status`. */
  constructor(filters = {}) {
    this.filters = filters;
    this.runs = new Map();
  }

  /** Reads as many runs as are shown. The position of the first page counts: events after it may
   * already be in later pages, and are applied again, which changes nothing. */
  async read(signal) {
    const runs = [];
    let lastEventId = null;
    let next = null;
    do {
      const query = new URLSearchParams({ ...this.filters, count: Math.min(MOST, this.#wanted - runs.length), ...(next && { before: next }) });
      const page = await call(`/api/runs?${query}`, { signal });
      runs.push(...page.runs);
      lastEventId ??= page.lastEventId;
      next = page.next;
    } while (next && runs.length < this.#wanted);
    return { runs, lastEventId, hasMore: next !== null };
  }

  take({ runs }) {
    this.runs = new Map(runs.map((each) => [each.id, each]));
  }

  wantMore(count = PAGE) {
    this.#wanted = Math.max(this.#wanted, this.runs.size) + count;
  }

  get isFiltered() {
    return Object.keys(this.filters).length > 0;
  }
}

/** The filters of an address, without empty ones. */
export function filtersIn(search) {
  const asked = new URLSearchParams(search);
  return Object.fromEntries(["site", "status"].map((name) => [name, asked.get(name)?.trim()]).filter(([, value]) => value));
}
