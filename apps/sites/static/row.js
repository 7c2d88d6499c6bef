// One run in the list: its facts for Rows, its link, its score and its buttons.

import { busy } from "/components/actions.js";
import { element, hide } from "/components/elements.js";
import { ago, counted } from "/components/format.js";
import { isEnded, kindOf, percentIn, PHASES, stateOf, stepOf } from "./phases.js";

export class Row {
  #open;
  #buttons;
  #score = element("span", [], { class: "row-score" });
  #tools;

  /** `acts` has a function for each button: `cancel`, `retry` and `remove`. */
  constructor({ id, site }, acts) {
    this.#open = element("a", [element("span", `Open ${site}`, { class: "unseen" })], { href: `/runs/${id}`, class: "open" });
    this.#buttons = { cancel: button("Cancel", site), retry: button("Retry", site), remove: button("Delete", site) };
    for (const [name, each] of Object.entries(this.#buttons)) each.onclick = () => busy(each, () => acts[name](id));
    this.#tools = element("div", Object.values(this.#buttons), { class: "tools" });
  }

  focus() {
    this.#open.focus();
  }

  /** The facts for Rows. The elements stay the same, so that the focus stays. */
  facts(run) {
    const { status } = run;
    const isHidden = { cancel: isEnded(status), retry: status !== "failed", remove: !isEnded(status) };
    for (const [name, hidden] of Object.entries(isHidden)) hide(this.#buttons[name], hidden, this.#open);
    this.#showScore(run);
    return {
      name: run.result?.businessName ?? run.site,
      kind: kindOf(status),
      stage: status === "completed" ? "" : stateOf(status),
      about: aboutOf(run),
      percent: percentIn(run.phase, run.progress),
      step: stepOf(run.phase),
      steps: PHASES.length,
      content: [this.#open, this.#score, this.#tools],
    };
  }

  #showScore({ status, result }) {
    this.#score.hidden = status !== "completed";
    if (status !== "completed") return;
    const score = result?.score;
    if (score == null) return this.#score.replaceChildren(element("small", skippedOf(result), { class: "faint" }));
    const meter = element("i");
    meter.style.setProperty("--part", `${100 * score}%`);
    this.#score.replaceChildren(element("span", [element("span", "Score ", { class: "unseen" }), score.toFixed(2)], { class: "number" }), meter);
  }
}

const skippedOf = (result) => (result?.modelAnalysis === "skipped: not_asked" ? "Not asked yet" : "No score");

function button(label, name) {
  return element("button", label, { type: "button", class: "button plain", "aria-label": `${label} ${name}` });
}

function aboutOf(run) {
  if (run.status === "failed" && run.error) return run.error.message;
  if (run.problem) return `${run.problem} It will be tried again.`;
  if (!isEnded(run.status)) return run.currentStep ?? "";
  const when = ago(run.finishedAt ?? run.createdAt).textContent;
  const pages = run.result ? [counted(run.result.pages, "page")] : [];
  return [run.site, ...pages, when].join(" · ");
}
