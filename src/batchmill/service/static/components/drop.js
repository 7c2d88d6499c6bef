// A zone for files, to choose or to drop:
//   <div class="drop"><label for="pdfs" class="button quiet">Choose PDFs</label>
//     <input id="pdfs" type="file" accept=".pdf" multiple class="unseen"> or drop them here <ul aria-label="Chosen PDFs"></ul></div>

import { element } from "./elements.js";
import { bytes } from "./format.js";
import { toast } from "./toast.js";

export class Drop {
  #input;
  #list;
  #changed;

  /** `files` are the chosen files, in their order. `changed` is called when they change. */
  constructor(zone, { changed = () => {} } = {}) {
    this.files = [];
    this.#input = zone.querySelector("input[type=file]");
    this.#list = zone.querySelector("ul");
    this.#changed = changed;
    this.#input.addEventListener("change", () => { this.add(this.#input.files); this.#input.value = ""; });
    for (const type of ["dragenter", "dragover"]) zone.addEventListener(type, () => zone.classList.add("over"));
    for (const type of ["dragleave", "drop"]) zone.addEventListener(type, () => zone.classList.remove("over"));
    zone.addEventListener("drop", (event) => this.add(event.dataTransfer.files));
    // A file that misses the zone must not replace the page.
    for (const type of ["dragover", "drop"]) addEventListener(type, (event) => event.preventDefault());
  }

  add(files) {
    const found = [...files];
    const refused = found.filter((file) => !isAccepted(file, this.#input.accept));
    if (refused.length) toast(`${refused.map((file) => file.name).join(", ")} cannot be used here: choose ${kindsOf(this.#input.accept).join(", ")}.`, { kind: "bad" });
    const room = this.#input.multiple ? this.files : [];
    for (const file of found) {
      if (!refused.includes(file) && !room.some((other) => isSame(file, other))) room.push(file);
    }
    this.files = this.#input.multiple ? room : room.slice(-1);
    this.#show();
  }

  clear() {
    this.files = [];
    this.#show();
  }

  #show() {
    this.#list.replaceChildren(...this.files.map((file) => {
      const remove = element("button", "✕", { type: "button", class: "button plain", "aria-label": `Remove ${file.name}` });
      remove.onclick = () => {
        this.files = this.files.filter((other) => other !== file);
        this.#show();
        this.#input.focus();
      };
      return element("li", [element("span", `${file.name} (${bytes(file.size)})`), remove]);
    }));
    this.#changed(this.files);
  }
}

// Two files may have one name and one size and differ: the server compares their bytes.
function isSame(file, other) {
  return ["name", "size", "lastModified"].every((fact) => file[fact] === other[fact]);
}

function kindsOf(accept) {
  return accept.toLowerCase().split(",").map((kind) => kind.trim()).filter(Boolean);
}

/** Browsers apply `accept` to files that are chosen, but not to those that are dropped. */
function isAccepted(file, accept) {
  const kinds = kindsOf(accept);
  const name = file.name.toLowerCase();
  const type = file.type.toLowerCase();
  return !kinds.length || kinds.some((kind) => kind.startsWith(".")
    ? name.endsWith(kind)
    : kind.endsWith("/*") ? type.startsWith(kind.slice(0, -1)) : type === kind);
}
