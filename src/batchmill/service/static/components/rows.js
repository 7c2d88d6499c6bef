// Live rows: <ol class="rows" aria-label="Sheets"></ol>
//
// Facts of a row: `name`; `kind`, one of waiting, active, done, failed, cancelled; `stage`, a word or
// two; `about`, a sentence; `percent` of the current step; `step` of `steps`, from 1; `content`,
// further elements, such as links, buttons or a player.

import { element } from "./elements.js";

export class Rows {
  #list;
  #rows = new Map();
  #changed = new Set();

  constructor(list) {
    this.#list = list;
  }

  /** Shows these rows instead of all others: pairs of a key and facts. */
  show(pairs) {
    const known = this.#rows;
    this.#rows = new Map(pairs.map(([key, facts]) => [key, { facts, item: known.get(key)?.item ?? row() }]));
    this.#changed = new Set(this.#rows.keys());
    this.#draw();
    const items = [...this.#rows.values()].map(({ item }) => item);
    // Moving an element would stop what plays in it and take its focus.
    if (items.length !== this.#list.children.length || items.some((item, at) => item !== this.#list.children[at])) {
      this.#list.replaceChildren(...items);
    }
  }

  /** Changes facts of a row. All changes until the next frame are drawn at once. */
  set(key, facts) {
    const found = this.#rows.get(key);
    if (!found) return;
    Object.assign(found.facts, facts);
    if (!this.#changed.size) requestAnimationFrame(() => this.#draw());
    this.#changed.add(key);
  }

  /** The facts of all rows. */
  get all() {
    return [...this.#rows.values()].map(({ facts }) => facts);
  }

  #draw() {
    for (const key of this.#changed) draw(this.#rows.get(key).item, this.#rows.get(key).facts);
    this.#changed.clear();
  }
}

function row() {
  return element("li", [element("b"), element("span", [], { class: "stage" }), element("small")]);
}

function draw(item, { name, kind, stage, about, content = null, ...progress }) {
  item.className = `row ${kind}`;
  [name, stage, about].forEach((text, at) => write(item.children[at], text ?? ""));
  drawBar(item, kind, name, progress);
  drawContent(item, [content ?? []].flat());
}

function write(place, text) {
  if (place.textContent !== text) place.textContent = text;
}

/** Between two steps a row waits, and keeps its bar. */
function drawBar(item, kind, name, { percent = null, step = 1, steps = 1 }) {
  let bar = item.querySelector(".steps");
  const isShown = kind === "active" ? percent !== null || steps > 1 : kind === "waiting" && step > 1;
  if (!isShown) return bar?.remove();
  if (bar?.children.length !== steps) {
    bar?.remove();
    bar = element("div", Array.from({ length: steps }, () => element("i")), { class: "steps", role: "progressbar", "aria-label": `Progress of ${name}` });
    item.children[2].after(bar);
  }
  [...bar.children].forEach((part, at) => { part.className = at < step - 1 ? "past" : ""; });
  const now = bar.children[step - 1];
  now.className = percent === null && kind === "active" ? "now unknown" : "now";
  now.style.setProperty("--part", `${percent ?? 0}%`);
  bar.ariaValueNow = String(Math.round((100 * (step - 1) + (percent ?? 0)) / steps));
  bar.ariaValueText = steps > 1 ? `step ${step} of ${steps}` : null;
}

function drawContent(item, content) {
  const place = item.querySelector(".content");
  if (!content.length) place?.remove();
  else if (!place) item.append(element("div", content, { class: "content" }));
  else if (place.firstChild !== content[0]) place.replaceChildren(...content);
}
