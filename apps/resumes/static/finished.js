// The history: finished exports with their downloads, until they expire.

import { busy } from "/components/actions.js";
import { element } from "/components/elements.js";
import { ago, bytes, counted } from "/components/format.js";
import { address } from "./api.js";
import { designName } from "./designs.js";
import { checked, hasFile } from "./downloads.js";
import { fill } from "./lists.js";
import { isExpired } from "./states.js";

const SOON_MS = 86_400_000;

export class Finished {
  #list;
  #acts;
  #items = new Map();

  /** `acts` has `remove(item)`, `again(item)`, `downloaded(id)` and `expired()`. */
  constructor(list, acts) {
    this.#list = list;
    this.#acts = acts;
  }

  show(history) {
    const known = this.#items;
    this.#items = new Map(history.map((item) => [item.id, known.get(item.id) ?? new Item(item, this.#acts)]));
    for (const item of history) this.#items.get(item.id).show(item);
    fill(this.#list, this.#items.values());
  }
}

class Item {
  #facts = element("p", [], { class: "faint small" });
  #fate = element("p", [], { class: "fate small" });
  #again;
  #download;
  #item;

  constructor(item, acts) {
    this.#download = checked(
      element("a", "Download", { href: address(`/export/download/${item.id}`), class: "button quiet", "aria-label": `Download ${item.fileName}` }),
      () => hasFile(item.id),
      { followed: () => acts.downloaded(item.id), gone: acts.expired },
    );
    const button = (label, kind, act) => {
      const made = element("button", label, { type: "button", class: `button ${kind}`, "aria-label": `${label} ${item.fileName}` });
      made.onclick = () => busy(made, () => act(this.#item));
      return made;
    };
    this.#again = button("Export again", "quiet", acts.again);
    const remove = button("Delete", "plain", acts.remove);
    this.element = element("li", [
      element("h4", item.fileName),
      this.#facts,
      element("div", [this.#fate, element("div", [remove, this.#again, this.#download], { class: "tools" })], { class: "foot" }),
    ]);
  }

  show(item) {
    this.#item = item;
    const isGone = isExpired({ status: "completed", ...item });
    this.element.className = isGone ? "gone" : "";
    const count = item.downloadCount ?? 0;
    const facts = [designName(item.templateSlug), item.pageCount && counted(item.pageCount, "page"), item.fileSize && bytes(item.fileSize), `version ${item.documentVersion}`];
    this.#facts.textContent = facts.filter(Boolean).join(" · ");
    this.#fate.replaceChildren(...fate(item, isGone), ...(count ? [` · downloaded ${count === 1 ? "once" : `${count} times`}`] : []));
    this.#fate.classList.toggle("soon", !isGone && Date.parse(item.expiresAt) - Date.now() < SOON_MS);
    this.#download.hidden = isGone;
    this.#again.hidden = !isGone;
  }
}

function fate({ expiresAt, expiredAt }, isGone) {
  if (isGone) return ["Expired ", ago(expiredAt ?? expiresAt)];
  return expiresAt ? ["Expires ", ago(expiresAt)] : [];
}
