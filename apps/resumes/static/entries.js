// The entries of a section: add, remove, move up and down.

import { announce, element } from "/components/elements.js";
import { toast } from "/components/toast.js";
import { Field } from "./field.js";

export class Entries {
  #spec;
  #items;
  #changed;
  #list = element("ol", [], { class: "entries" });
  #add;
  #entries;

  /** `items` is the list in the document, which this changes. */
  constructor(spec, items, changed) {
    this.#spec = spec;
    this.#items = items;
    this.#changed = changed;
    this.#entries = items.map((item) => this.#made(item));
    this.#list.ariaLabel = spec.label;
    this.#add = element("button", `Add ${spec.isUncountable ? spec.one : article(spec.one)}`, { type: "button", class: "button quiet add" });
    this.#add.onclick = () => this.#insert({}, this.#items.length, true);
    this.element = element("div", [this.#list, this.#add]);
    this.#show();
  }

  get count() {
    return this.#items.length;
  }

  /** The field at the rest of a path, such as [2, "startDate"], with what has to be opened to see it. */
  find([index, name]) {
    const entry = this.#entries[index];
    return entry ? { field: entry.fields.get(name) ?? [...entry.fields.values()][0], place: `${this.#spec.label}, entry ${index + 1}`, open: [entry.details] } : null;
  }

  #made(item) {
    const title = element("span", [], { class: "name" });
    const facts = element("span", [], { class: "faint small" });
    const fields = new Map();
    const entry = { item, fields };
    entry.label = () => {
      title.textContent = this.#spec.title(item) || `New ${this.#spec.one}`;
      facts.textContent = this.#spec.facts(item);
      for (const [verb, button] of Object.entries(entry.buttons)) button.ariaLabel = `${LABELS[verb]} ${title.textContent}`;
    };
    for (const spec of this.#spec.fields) {
      fields.set(spec.name, new Field(spec, item, () => { entry.label(); this.#changed(); }));
    }
    const button = (sign, act) => {
      const made = element("button", sign, { type: "button", class: "button plain" });
      made.onclick = () => act(this.#entries.indexOf(entry));
      return made;
    };
    entry.buttons = { up: button("↑", (at) => this.#move(at, -1)), down: button("↓", (at) => this.#move(at, 1)), remove: button("✕", (at) => this.#remove(at)) };
    entry.details = element("details", [element("summary", [title, facts]), element("div", [...fields.values()].map((each) => each.element), { class: "fields" })]);
    entry.element = element("li", [entry.details, element("div", Object.values(entry.buttons), { class: "tools" })], { class: "entry" });
    entry.label();
    return entry;
  }

  #show() {
    this.#list.replaceChildren(...this.#entries.map((entry) => entry.element));
    this.#entries.forEach(({ buttons }, at) => {
      buttons.up.ariaDisabled = at === 0 ? "true" : null;
      buttons.down.ariaDisabled = at === this.#entries.length - 1 ? "true" : null;
    });
    this.#list.hidden = !this.#entries.length;
  }

  #insert(item, at, isNew = false) {
    const entry = this.#made(item);
    this.#items.splice(at, 0, item);
    this.#entries.splice(at, 0, entry);
    this.#show();
    this.#changed();
    entry.details.open = isNew;
    if (isNew) [...entry.fields.values()][0].focus(); else entry.details.querySelector("summary").focus();
  }

  #move(at, by) {
    const to = at + by;
    if (to < 0 || to >= this.#entries.length) return;
    for (const list of [this.#items, this.#entries]) list.splice(to, 0, ...list.splice(at, 1));
    // Moving an element takes its focus.
    const focused = document.activeElement;
    this.#show();
    focused?.focus();
    announce(`Moved to position ${to + 1} of ${this.#entries.length}`);
    this.#changed();
  }

  #remove(at) {
    const [{ item }] = this.#entries.splice(at, 1);
    this.#items.splice(at, 1);
    this.#show();
    (this.#entries[Math.min(at, this.#entries.length - 1)]?.details.querySelector("summary") ?? this.#add).focus();
    this.#changed();
    toast(`${this.#spec.title(item) || `One ${this.#spec.one}`} is removed.`, { action: { label: "Undo", run: () => this.#insert(item, Math.min(at, this.#items.length)) } });
  }
}

const LABELS = { up: "Move up:", down: "Move down:", remove: "Remove" };

const article = (noun) => `${/^[aeiou]/.test(noun) ? "an" : "a"} ${noun}`;
