// The report of a run, section by section.

import { $, element } from "/components/elements.js";
import { answers } from "./answers.js";
import { checks } from "./checks.js";
import { changes } from "./comparison.js";
import { competitors } from "./competitors.js";
import { facts } from "./facts.js";
import { pages } from "./sitepages.js";
import { questions } from "./questions.js";
import { score } from "./score.js";
import { use } from "./use.js";

// The id, the name in the contents, the heading, and a function that makes the content or null.
const SECTIONS = [
  ["score", "Score", "How answers mention the business", score],
  ["changes", "Changes", "What has changed", changes],
  ["checks", "Checks", "What to improve", checks],
  ["facts", "Facts", "What the site says about itself", facts],
  ["questions", "Questions", "Questions", questions],
  ["answers", "Answers", "Answers", answers],
  ["competitors", "Competitors", "Named instead", competitors],
  ["pages", "Pages", "Pages", pages],
  ["use", "Cost", "Tokens and cost", use],
];

/** `given` has the `report`, its `run`, the `address` of the run in the API, and the `providers` of this server. */
export function showReport(given) {
  const made = SECTIONS.map(([id, label, title, make]) => [id, label, title, make(given)]).filter(([, , , content]) => content);
  $("report").replaceChildren(overview(given), ...ordered(made, given).map(([id, , title, content]) => section(id, title, content)));
  $("contents").replaceChildren(...ordered(made, given).map(([id, label]) => element("a", label, { href: `#${id}` })));
  $("contents").hidden = false;
}

/** Questions that wait to be asked come first. */
function ordered(sections, { report }) {
  if (report.modelAnalysis.state !== "skipped: not_asked") return sections;
  const isFirst = ([id]) => ["score", "questions"].includes(id);
  return [...sections.filter(isFirst), ...sections.filter((each) => !isFirst(each))];
}

function section(id, title, content) {
  return element("section", [element("h2", title, { id: `${id}-title` }), ...[content].flat()], { id, class: "card part", "aria-labelledby": `${id}-title` });
}

function overview({ report: { website, modelAnalysis: { score: whole, answers: given, providers } } }) {
  const known = website.checks.filter(({ state }) => state !== "unknown");
  const figures = [
    ["Score", whole ? whole.value.toFixed(2) : "–", whole ? "from 0 to 1" : "no model was asked"],
    ["Checks passed", known.filter(({ state }) => state === "pass").length, `of ${known.length}`],
    ["Pages read", website.pages.filter(({ outcome }) => outcome === "read").length, `of ${website.pages.length} found`],
    ["Answers", given.length, providers.length ? `from ${providers.filter(({ state }) => state !== "failed").length} of ${providers.length} models` : "none"],
  ];
  return element("dl", figures.map(([name, value, about]) => element("div", [
    element("dt", name), element("dd", String(value)), element("dd", about, { class: "faint" }),
  ], { class: "card figure" })), { class: "cards overview" });
}
