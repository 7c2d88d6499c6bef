// The score with its parts, by model and by question.

import { element } from "/components/elements.js";
import { counted } from "/components/format.js";
import { bar, chart, exact, PARTS } from "./bars.js";

const SKIPPED = {
  "skipped: not_configured": [
    "No model is configured on this server, so none was asked.",
    "What the site says, the checks and the questions below are complete. To measure mentions, the operator sets SITES_PROVIDERS; then repeat this run.",
  ],
  "skipped: not_asked": ["The questions are ready, but have not been asked.", "Edit them below if you like, then ask them. The site is read again, and the answers are in a new report."],
};

export function score({ report: { modelAnalysis: analysis, prompts } }) {
  const failures = analysis.providers.filter(({ state }) => state !== "answered").map(failureOf);
  if (!analysis.score) return [...nothing(analysis), ...failures];
  const texts = new Map(prompts.map(({ id, text }) => [id, text]));
  const models = analysis.providers.map(({ provider, model, score: part, state }) => ({ name: provider, about: model, score: part, reason: state === "failed" ? "Failed" : "Not scored" }));
  const asked = analysis.prompts.map(({ prompt, score: part }) => ({ name: texts.get(prompt) ?? prompt, score: part, reason: "Names the business: not scored" }));
  return [
    element("div", [whole(analysis.score), element("div", [chart("By model", models), chart("By question", asked)], { class: "charts" })], { class: "score-grid" }),
    ...failures,
    matrix(analysis, asked),
  ];
}

function nothing({ state }) {
  const [what, then] = SKIPPED[state] ?? ["No general question was answered, so there is no score.", "Direct questions name the business themselves, and are not scored."];
  return [element("div", [element("p", element("strong", what)), element("p", then)], { class: "notice" })];
}

/** The sum, to be recomputed by hand. */
function whole(value) {
  const rows = PARTS.map(([name, label, weight, meaning]) => element("tr", [
    element("th", [element("span", [], { class: `key ${name}` }), label, element("small", meaning)], { scope: "row" }),
    element("td", exact(value[name]), { class: "number" }),
    element("td", `× ${weight}`, { class: "number faint" }),
    element("td", exact(weight * value[name]), { class: "number" }),
  ]));
  const sum = element("tr", [element("th", "Score", { scope: "row" }), element("td"), element("td"), element("td", exact(value.value), { class: "number strong" })]);
  return element("div", [
    element("p", [value.value.toFixed(2), element("span", [" mean of ", counted(value.answers, "answer")], { class: "faint" })], { class: "big" }),
    bar(value),
    element("table", [element("caption", "The score is the weighted sum of its parts", { class: "unseen" }), element("tbody", rows), element("tfoot", sum)], { class: "sum" }),
  ], { class: "whole" });
}

function failureOf({ provider, model, state, failures }) {
  const what = state === "failed" ? "has not answered any question, so it does not count in the score." : "has not answered all questions. The missing answers do not count in its score.";
  return element("div", [element("p", [element("strong", `${provider} (${model}) `), what]), element("p", [failures[0].message, " ", element("code", failures[0].code)], { class: "small" })], { class: "notice warn" });
}

/** Each model and each question: a table that is a chart too. */
function matrix({ providers, answers, prompts }, asked) {
  const heard = providers.filter(({ state }) => state !== "failed");
  const found = new Map(answers.map((each) => [`${each.answer.provider} ${each.answer.prompt}`, each]));
  const rows = prompts.filter(({ score: part }) => part).map(({ prompt }) => element("tr", [
    element("th", asked[prompts.findIndex((each) => each.prompt === prompt)].name, { scope: "row" }),
    ...heard.map(({ provider }) => element("td", cell(found.get(`${provider} ${prompt}`)), { "data-label": provider })),
  ]));
  return element("figure", [
    element("figcaption", "By question and model"),
    element("div", element("table", [
      element("thead", element("tr", [element("td", "Question"), ...heard.map(({ provider }) => element("th", provider, { scope: "col" }))])),
      element("tbody", rows),
    ]), { class: "matrix", tabindex: "0", role: "region", "aria-label": "Scores by question and model" }),
  ], { class: "chart" });
}

function cell(each) {
  if (!each?.score) return element("span", "–", { class: "faint" });
  return element("span", [bar(each.score), element("span", each.score.value.toFixed(2), { class: "number" })], { class: "cell" });
}
