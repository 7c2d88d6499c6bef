// Tables:
//   <div class="table" tabindex="0" role="region" aria-label="Exports">
//     <table><thead></thead><tbody></tbody></table></div>
//
// A column has a `label`; `value(item)`, a text, a number or elements; `class`, such as number, wide or
// strong; `sort(item)`, what to sort by, if it can be sorted; `short`, a label on phones.

import { element } from "./elements.js";

export class Table {
  #table;
  #columns;
  #items = [];
  #sorted = null;
  #isReversed = false;

  constructor(table, columns) {
    this.#table = table;
    // On a phone the rows are displayed as cards, which would take away these roles.
    table.setAttribute("role", "table");
    for (const part of table.children) part.setAttribute("role", "rowgroup");
    this.columns = columns;
  }

  set columns(columns) {
    this.#columns = columns;
    this.#table.tHead.replaceChildren(element("tr", columns.map((column) => this.#head(column)), { role: "row" }));
  }

  show(items) {
    this.#items = [...items];
    this.#draw();
  }

  #head(column) {
    const head = element("th", column.label, { role: "columnheader", scope: "col", class: column.class ?? "" });
    if (!column.sort) return head;
    const button = element("button", column.label, { type: "button", class: "sort" });
    button.onclick = () => {
      this.#isReversed = this.#sorted === column && !this.#isReversed;
      this.#sorted = column;
      for (const other of this.#table.tHead.querySelectorAll("th")) other.ariaSort = null;
      head.ariaSort = this.#isReversed ? "descending" : "ascending";
      this.#draw();
    };
    head.replaceChildren(button);
    return head;
  }

  #draw() {
    const items = this.#sorted ? sorted(this.#items, this.#sorted.sort, this.#isReversed) : this.#items;
    this.#table.tBodies[0].replaceChildren(...items.map((item) => element("tr", this.#columns.map((column) => cell(column, item)), { role: "row" })));
  }
}

function cell({ value, short, ...column }, item) {
  const made = element("td", [value(item) ?? ""].flat().map((each) => (each instanceof Node ? each : String(each))), { role: "cell" });
  if (column.class) made.className = column.class;
  if (short) made.dataset.label = short;
  return made;
}

function sorted(items, by, isReversed) {
  const order = items.map((item) => [by(item), item]).sort(([one], [other]) => compared(one, other)).map(([, item]) => item);
  return isReversed ? order.reverse() : order;
}

function compared(one, other) {
  if (one == null || other == null) return (one == null) - (other == null);
  return typeof one === "string" ? one.localeCompare(other, undefined, { numeric: true }) : one - other;
}
