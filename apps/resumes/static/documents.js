// The documents of the user: the grid, and which of them are selected.

import { get } from "./api.js";
import { Card } from "./card.js";
import { fill } from "./lists.js";

const PAGE = 24;

export class Documents {
  #grid;
  #acts;
  #cards = new Map();
  #selected = new Set();
  #changed;
  #wanted = PAGE;
  #read = 0;

  /** `changed` is called when the documents or the selection change. */
  constructor(grid, acts, changed) {
    this.#grid = grid;
    this.#acts = { ...acts, select: ({ id }, isSelected) => this.select(id, isSelected) };
    this.#changed = changed;
    this.hasMore = false;
  }

  /** Reads as many documents as are shown. */
  async read() {
    const mine = ++this.#read;
    const found = [];
    let next = null;
    do {
      const query = new URLSearchParams({ count: Math.min(PAGE, this.#wanted - found.length), ...(next && { before: next }) });
      const page = await get(`/documents?${query}`);
      found.push(...page.documents);
      next = page.next;
    } while (next && found.length < this.#wanted);
    // A later question may have its answer already.
    if (mine !== this.#read) return;
    this.hasMore = Boolean(next);
    this.#show(found);
  }

  readMore() {
    this.#wanted = this.#cards.size + PAGE;
    return this.read();
  }

  #show(documents) {
    const known = this.#cards;
    this.#cards = new Map(documents.map((document) => {
      const card = known.get(document.id) ?? new Card(document, this.#acts);
      card.show(document);
      return [document.id, card];
    }));
    this.#selected = new Set([...this.#selected].filter((id) => this.#cards.has(id)));
    fill(this.#grid, this.#cards.values());
    this.#changed();
  }

  /** Shows again how long ago documents were edited. */
  tick() {
    for (const card of this.#cards.values()) card.show(card.document);
  }

  select(id, isSelected) {
    if (isSelected) this.#selected.add(id); else this.#selected.delete(id);
    this.#cards.get(id).isSelected = isSelected;
    this.#changed();
  }

  clear() {
    for (const id of [...this.#selected]) this.select(id, false);
  }

  /** Leaves out documents that are deleted. */
  drop(ids) {
    this.#show([...this.#cards.values()].map((card) => card.document).filter(({ id }) => !ids.includes(id)));
  }

  focus(id) {
    this.#cards.get(id)?.focus();
  }

  get size() {
    return this.#cards.size;
  }

  /** The selected documents, in the order of the grid. */
  get selected() {
    return [...this.#cards.values()].map((card) => card.document).filter(({ id }) => this.#selected.has(id));
  }
}
