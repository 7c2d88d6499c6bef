// The photo in a document: a small picture as a data URL, because exports fetch nothing.

import { element } from "/components/elements.js";
import { toast } from "/components/toast.js";

const EDGE = 600;
const QUALITY = 0.85;

export class Photo {
  #image = element("img", [], { alt: "The photo in this document", width: 72, height: 72 });
  #remove = element("button", "Remove photo", { type: "button", class: "button plain" });
  #write;

  constructor(id, url, write) {
    this.#write = write;
    this.input = element("input", [], { id, type: "file", accept: "image/*", class: "unseen" });
    this.input.onchange = () => this.#choose();
    this.#remove.onclick = () => {
      this.#show("");
      write("");
      this.input.focus();
    };
    this.element = element("div", [this.#image, element("label", "Choose a photo", { for: id, class: "button quiet" }), this.input, this.#remove], { class: "photo" });
    this.#show(url ?? "");
  }

  /** Only pictures in the document itself are shown, as in its exports. */
  #show(url) {
    const isInside = url.startsWith("data:image/");
    this.#image.hidden = !isInside;
    if (isInside) this.#image.src = url;
    this.#remove.hidden = !url;
  }

  async #choose() {
    const [file] = this.input.files;
    this.input.value = "";
    if (!file) return;
    try {
      const url = await small(file);
      this.#show(url);
      this.#write(url);
    } catch {
      toast(`${file.name} is not a picture that this browser can read.`, { kind: "bad" });
    }
  }
}

/** The picture as a JPEG with at most EDGE pixels on each side. */
async function small(file) {
  const bitmap = await createImageBitmap(file);
  const scale = Math.min(1, EDGE / Math.max(bitmap.width, bitmap.height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  const drawing = canvas.getContext("2d");
  // A JPEG has no transparency.
  drawing.fillStyle = "#fff";
  drawing.fillRect(0, 0, canvas.width, canvas.height);
  drawing.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/jpeg", QUALITY);
}
