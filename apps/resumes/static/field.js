// One field of the form. It changes the document only when its user changes it.

import { element } from "/components/elements.js";
import { Photo } from "./photo.js";

const TYPES = { text: "text", date: "text", email: "email", tel: "tel", url: "url" };
const DATE = "2021, 2021-04 or 2021-04-30";

let count = 0;

export class Field {
  #spec;
  #holder;
  #input;
  #problem;

  /** `holder` is the object that the field belongs to, and `changed` is called after each change. */
  constructor(spec, holder, changed) {
    const id = `field-${++count}`;
    this.#spec = spec;
    this.#holder = holder;
    const write = (value) => {
      if (value === "" || value.length === 0) delete holder[spec.name]; else holder[spec.name] = value;
      this.problem = "";
      changed();
    };
    const photo = spec.kind === "photo" ? new Photo(id, holder[spec.name], write) : null;
    this.#input = photo ? photo.input : inputOf(spec, id);
    this.#problem = element("p", [], { id: `${id}-problem`, class: "problem small", role: "alert" });
    const hint = spec.hint ?? (spec.kind === "lines" ? "One in each line" : null);
    const hints = [...(hint ? [`${id}-hint`] : []), `${id}-problem`];
    this.#input.setAttribute("aria-describedby", hints.join(" "));
    if (!photo) {
      this.#input.value = shown(holder[spec.name]);
      this.#input.oninput = () => write(this.#value());
    }
    const label = element(photo ? "span" : "label", [spec.label, ...(hint ? [element("span", ` ${hint}`, { id: `${id}-hint`, class: "hint" })] : [])], photo ? { class: "label" } : { for: id });
    this.element = element("div", [label, photo ? photo.element : this.#input, this.#problem], { class: `field${isWide(spec) ? " wide" : ""}` });
  }

  set problem(text) {
    if (this.#problem.textContent === text) return;
    this.#problem.textContent = text;
    if (text) this.#input.setAttribute("aria-invalid", "true"); else this.#input.removeAttribute("aria-invalid");
  }

  get label() {
    return this.#spec.label;
  }

  focus() {
    this.#input.focus();
  }

  #value() {
    const { value } = this.#input;
    if (this.#spec.kind === "lines") return value.split("\n").map((line) => line.trim()).filter(Boolean);
    return this.#spec.kind === "long" ? value : value.trim();
  }
}

const isWide = ({ kind, isWide: asked }) => asked || ["long", "lines", "photo"].includes(kind);

function inputOf({ kind, name, placeholder, autocomplete = "off", rows = 3 }, id) {
  const attributes = { id, name, autocomplete, dir: "auto", ...(placeholder && { placeholder }) };
  if (kind === "long" || kind === "lines") return element("textarea", [], { ...attributes, rows: String(rows) });
  return element("input", [], { ...attributes, type: TYPES[kind], ...(kind === "date" && { placeholder: DATE, inputmode: "numeric" }) });
}

function shown(value) {
  if (Array.isArray(value)) return value.join("\n");
  return value == null ? "" : String(value);
}
