// One document in the grid: the picture of its first page, its name, and what can be done with it.

import { busy } from "/components/actions.js";
import { element } from "/components/elements.js";
import { ago } from "/components/format.js";
import { menu } from "/components/menu.js";
import { address } from "./api.js";
import { loadWhenSeen } from "./thumbnails.js";

export class Card {
  #box;
  #link;
  #label = element("p", [], { class: "faint small" });
  #facts = element("p", [], { class: "faint small" });
  #image = element("img", [], { alt: "", class: "sheet", width: 340, height: 440, draggable: "false" });
  #version = null;

  /** `acts` has `select(document, isSelected)`, and `export`, `copy`, `save` and `remove` for the menu. */
  constructor(document, acts) {
    const { name } = document;
    this.#box = element("input", [], { type: "checkbox", "aria-label": `Select ${name}` });
    this.#link = element("a", name, { href: `/documents/${document.id}` });
    const item = (label, act) => {
      const button = element("button", label, { type: "button" });
      button.onclick = () => busy(button, () => acts[act](this.document));
      return button;
    };
    const items = [element("a", "Edit", { href: `/documents/${document.id}` }), item("Export …", "export"), item("Duplicate", "copy"), item("Download JSON", "save"), item("Delete …", "remove")];
    this.#box.onchange = () => acts.select(this.document, this.#box.checked);
    this.element = element("li", [
      element("label", this.#box, { class: "pick" }),
      element("div", this.#image, { class: "paper" }),
      element("div", [element("h3", this.#link), menu("⋯", items, { label: `Actions for ${name}`, kind: "plain" })], { class: "title" }),
      this.#label,
      this.#facts,
    ], { class: "document" });
    this.show(document);
  }

  show(document) {
    this.document = document;
    this.#link.textContent = this.#link.title = document.name;
    this.#label.textContent = this.#label.title = document.label ?? "";
    this.#facts.replaceChildren("Edited ", ago(document.updatedAt));
    if (document.version === this.#version) return;
    this.#version = document.version;
    loadWhenSeen(this.#image, address(`/documents/${document.id}/thumbnail?version=${document.version}`));
  }

  set isSelected(isSelected) {
    this.#box.checked = isSelected;
    this.element.classList.toggle("selected", isSelected);
  }

  focus() {
    this.#link.focus();
  }
}
