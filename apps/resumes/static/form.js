// The form of a whole document: its basics, and one part for each section.

import { element } from "/components/elements.js";
import { Entries } from "./entries.js";
import { Field } from "./field.js";
import { BASICS, LOCATION, PROFILES, SECTIONS } from "./resume.js";

export class Form {
  #place;
  #fields = new Map();
  #location = new Map();
  #profiles;
  #sections = new Map();
  #parts = {};
  #changed;
  #problems = [];

  /** Shows `document`, and changes it as its user types. */
  constructor(place, document, changed) {
    this.#place = place;
    this.#changed = () => { this.#count(); changed(); };
    this.#fields = this.#made(BASICS, document.basics);
    this.#location = this.#made(LOCATION, document.basics.location);
    this.#profiles = new Entries(PROFILES, document.basics.profiles, this.#changed);
    this.#parts.basics = part("Basics", [fields(this.#fields)]);
    this.#parts.location = part("Address", [fields(this.#location)]);
    this.#parts.profiles = part("Profiles", [this.#profiles.element]);
    for (const spec of SECTIONS) {
      this.#sections.set(spec.name, new Entries(spec, document[spec.name], this.#changed));
      this.#parts[spec.name] = part(spec.label, [this.#sections.get(spec.name).element]);
    }
    this.#parts.basics.open = true;
    this.#place.replaceChildren(...Object.values(this.#parts));
    this.#count();
  }

  /** Shows a problem at the field with this path. Returns where it is in words, or null if the form has no such field. */
  complain(path, text) {
    const found = this.#find(path);
    if (!found) return null;
    found.field.problem = text;
    this.#problems.push(found.field);
    return { ...found, place: [found.place, found.field.label].filter(Boolean).join(", ") };
  }

  clearProblems() {
    for (const field of this.#problems) field.problem = "";
    this.#problems = [];
  }

  /** Opens what hides a field, and moves the focus there. */
  reveal({ field, open }) {
    for (const details of open) details.open = true;
    field.focus();
  }

  focus() {
    this.#fields.get("name").focus();
  }

  #made(specs, holder) {
    return new Map(specs.map((spec) => [spec.name, new Field(spec, holder, this.#changed)]));
  }

  #find([first, ...rest]) {
    if (first !== "basics") {
      const found = this.#sections.get(first)?.find(rest);
      return found && { ...found, open: [this.#parts[first], ...found.open] };
    }
    const [name, ...inner] = rest;
    if (name === "profiles") {
      const found = this.#profiles.find(inner);
      return found && { ...found, open: [this.#parts.profiles, ...found.open] };
    }
    const isPlace = name === "location";
    const field = isPlace ? this.#location.get(inner[0]) ?? this.#location.get("city") : this.#fields.get(name) ?? this.#fields.get("name");
    return { field, place: "", open: [isPlace ? this.#parts.location : this.#parts.basics] };
  }

  #count() {
    for (const [name, entries] of [["profiles", this.#profiles], ...this.#sections]) {
      this.#parts[name].querySelector(".count").textContent = entries.count ? String(entries.count) : "";
    }
  }
}

function part(label, content) {
  return element("details", [
    element("summary", [element("h2", label), element("span", [], { class: "count badge" })]),
    element("div", content, { class: "body" }),
  ], { class: "part card" });
}

const fields = (made) => element("div", [...made.values()].map((each) => each.element), { class: "fields" });
