// How much of the quota is used: bars for storage and for today's exports.

import { element } from "/components/elements.js";
import { bytes } from "/components/format.js";

const NEAR = 0.85;

export class Quota {
  #place;

  constructor(place) {
    this.#place = place;
  }

  show({ storage, operations }) {
    const bars = [
      ["Storage", storage, `${size(storage.used)} of ${size(storage.limit ?? 0)}`, "Delete finished exports to free space."],
      ["Exports today", operations, `${operations.used} of ${operations.limit}`, resets(operations)],
    ].filter(([, { limit }]) => limit != null);
    this.#place.hidden = !bars.length;
    this.#place.replaceChildren(...bars.map(bar));
  }
}

const size = (count) => bytes(count).replace(".0 ", " ");

function bar([label, { used, limit }, text, advice]) {
  const part = limit ? Math.min(1, used / limit) : 1;
  const kind = part >= 1 ? "full" : part >= NEAR ? "near" : "";
  const meter = element("i", [], { role: "meter", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": limit, "aria-valuenow": Math.min(used, limit), "aria-valuetext": text });
  // An amount that is not zero is seen.
  meter.style.setProperty("--part", `${used ? Math.max(1, 100 * part) : 0}%`);
  return element("div", [
    element("dt", label),
    element("dd", text, { class: "number" }),
    element("dd", meter, { class: "bar" }),
    ...(kind === "full" ? [element("dd", advice, { class: "advice" })] : []),
  ], { class: kind });
}

function resets({ resetsAt }) {
  if (!resetsAt) return "You can export again tomorrow.";
  return `You can export again from ${new Date(resetsAt).toLocaleTimeString(undefined, { timeStyle: "short" })}.`;
}
