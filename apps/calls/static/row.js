// One call in the list: its facts for Rows, its link, its buttons, and the moments that a search found.

import { busy } from "/components/actions.js";
import { element, hide } from "/components/elements.js";
import { ago } from "/components/format.js";
import { nameOf, voiceOf } from "./speakers.js";
import { factsOf, isEnded, kindOf, STAGES, stateOf, stepOf } from "./stages.js";
import { clock, momentHash } from "./times.js";

export class Row {
  #open;
  #buttons;
  #moments = element("ul", [], { class: "moments" });
  #tools;

  /** `acts` has a function for each button: `cancel`, `retry` and `remove`. */
  constructor(given, acts) {
    const address = `/calls/${given.id}`;
    this.#open = element("a", [element("span", `Open ${given.name}`, { class: "unseen" })], { href: address, class: "open" });
    this.#buttons = { cancel: button("Cancel", given.name), retry: button("Retry", given.name), remove: button("Delete", given.name) };
    for (const [name, each] of Object.entries(this.#buttons)) each.onclick = () => busy(each, () => acts[name](given.id));
    this.#tools = element("div", Object.values(this.#buttons), { class: "tools" });
  }

  /** The facts for Rows. The elements stay the same, so that the focus stays. */
  facts(given, words = "") {
    const { status } = given;
    const isHidden = { cancel: isEnded(status), retry: status !== "failed", remove: !isEnded(status) };
    for (const [name, hidden] of Object.entries(isHidden)) hide(this.#buttons[name], hidden, this.#open);
    this.#moments.hidden = !given.moments?.length;
    this.#moments.replaceChildren(...(given.moments ?? []).map((moment) => this.#moment(given.id, moment, words)));
    return {
      name: given.name,
      kind: kindOf(status),
      stage: stateOf(given),
      about: aboutOf(given),
      percent: given.percent ?? null,
      step: stepOf(given.stage),
      steps: STAGES.length,
      content: [this.#open, this.#tools, this.#moments],
    };
  }

  #moment(id, { start, speaker, text }, words) {
    const link = element("a", [element("span", clock(start), { class: "time" }), " ", element("q", marked(text, words))], {
      href: `/calls/${id}${momentHash(start)}`, "data-voice": voiceOf(speaker), title: nameOf(speaker),
    });
    return element("li", link);
  }
}

function button(label, name) {
  return element("button", label, { type: "button", class: "button plain", "aria-label": `${label} ${name}` });
}

function aboutOf(given) {
  if (given.status === "failed" && given.error) return given.error.message;
  if (given.problem) return `${given.problem} It will be tried again.`;
  return [...factsOf(given), ago(given.createdAt).textContent].join(" · ");
}

/** Marks the words that were searched, also in other forms, which the server finds too. */
function marked(text, words) {
  const searched = words.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  return text.split(/([\p{L}\p{N}'’]+)/u).map((part) => (
    searched.some((word) => isForm(part.toLowerCase(), word)) ? element("mark", part) : part
  ));
}

/** Forms of a long word begin with the same letters; short words get only usual endings. */
function isForm(part, word) {
  if (word.length > 4) return part.startsWith(word.slice(0, Math.max(4, word.length - 3))) && part.length < word.length + 4;
  return part.startsWith(word) && ["", "s", "es", "'s", "’s", "ed", "ing"].includes(part.slice(word.length));
}
