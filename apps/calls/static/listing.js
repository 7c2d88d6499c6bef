// The calls that the list shows: which ones, how many, and how they change.

import { call } from "/components/http.js";

const PAGE = 50;
const MOST = 200;

export class Listing {
  #wanted = PAGE;

  /** `filters` are the parameters of the address: `q` and `status`. */
  constructor(filters = {}) {
    this.filters = filters;
    this.calls = new Map();
  }

  /** Reads as many calls as are shown. The position of the first page counts: events after it may
   * already be in later pages, and are applied again, which changes nothing. */
  async read(signal) {
    const calls = [];
    let lastEventId = null;
    let next = null;
    do {
      const query = new URLSearchParams({ ...this.filters, count: Math.min(MOST, this.#wanted - calls.length), ...(next && { before: next }) });
      const page = await call(`/api/calls?${query}`, { signal });
      calls.push(...page.calls);
      lastEventId ??= page.lastEventId;
      next = page.next;
    } while (next && calls.length < this.#wanted);
    return { calls, lastEventId, hasMore: next !== null };
  }

  take({ calls }) {
    this.calls = new Map(calls.map((each) => [each.id, each]));
  }

  wantMore() {
    this.#wanted = this.calls.size + PAGE;
  }

  /** One more call is uploaded: the others stay in the list. */
  wantOneMore() {
    this.#wanted += 1;
  }

  get isFiltered() {
    return Object.keys(this.filters).length > 0;
  }
}

/** The filters of an address, without empty ones. */
export function filtersIn(search) {
  const asked = new URLSearchParams(search);
  return Object.fromEntries(["q", "status"].map((name) => [name, asked.get(name)?.trim()]).filter(([, value]) => value));
}
