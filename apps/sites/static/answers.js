// What each model answered to each question.

import { element } from "/components/elements.js";
import { counted } from "/components/format.js";
import { marked } from "./marks.js";

const LONG = 900;

export function answers({ report: { modelAnalysis: { answers: found, providers }, prompts } }) {
  if (!found.length) return null;
  return prompts.map((prompt) => question(prompt, providers, found.filter(({ answer }) => answer.prompt === prompt.id)));
}

function question({ id, text, kind }, providers, found) {
  const failed = providers.filter(({ state }) => state === "partial").flatMap(({ provider, failures }) => failures
    .filter(({ prompt }) => prompt === id)
    .map(({ message }) => element("p", [element("strong", `${provider}: `), message], { class: "notice warn small" })));
  return element("article", [
    element("h3", [text, ...(kind === "direct" ? [" ", element("span", "direct", { class: "badge", title: "It names the business, so it is not scored" })] : [])]),
    element("div", found.map(answered), { class: "answers" }),
    ...failed,
  ], { class: "question" });
}

function answered({ answer, mentions, score }) {
  const text = element("div", [...marked(answer.text, mentions), ...(answer.isCut ? [element("span", " [The answer is cut here.]", { class: "faint" })] : [])], { class: "said" });
  return element("div", [
    element("p", [element("b", answer.provider), " ", element("span", answer.model, { class: "faint" })], { class: "by" }),
    ...(answer.text.length > LONG ? folded(text) : [text]),
    element("p", summary(mentions, score), { class: "outcome" }),
  ], { class: "answer", "data-provider": answer.provider });
}

function folded(text) {
  text.classList.add("folded");
  const more = element("button", "Show all", { type: "button", class: "button plain", "aria-expanded": "false" });
  more.onclick = () => {
    const isFolded = text.classList.toggle("folded");
    more.ariaExpanded = String(!isFolded);
    more.textContent = isFolded ? "Show all" : "Show less";
  };
  return [text, more];
}

function summary(mentions, score) {
  const first = [...mentions].sort((one, other) => one.start - other.start)[0];
  return [
    mentions.length ? element("b", counted(mentions.length, "mention")) : element("span", "Not mentioned", { class: "absent" }),
    ...(first ? [` · first in ${first.rankedBy === "business" ? `place ${first.rank}` : `sentence ${first.rank}`}`] : []),
    ...(score ? [" · score ", element("span", score.value.toFixed(4), { class: "number" })] : [" · not scored"]),
  ];
}
