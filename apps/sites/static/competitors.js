// Other businesses that answers name.

import { element } from "/components/elements.js";
import { counted } from "/components/format.js";
import { Table } from "/components/table.js";

export function competitors({ report: { modelAnalysis: { competitors: found, answers }, website } }) {
  if (!answers.length) return null;
  if (!found.length) return element("p", "The answers name no other business.", { class: "faint" });
  const own = website.facts.businessName?.value ?? "this business";
  const most = Math.max(...found.map(({ count }) => count));
  const table = element("table", [element("thead"), element("tbody")]);
  new Table(table, [
    { label: "Business", class: "wide strong", sort: ({ name }) => name, value: ({ name }) => name },
    { label: "Answers", short: "Answers", class: "number", sort: ({ count }) => count, value: ({ count }) => [meter(count / most), element("span", String(count), { class: "count" })] },
    { label: "Instead", short: "Instead", class: "number", sort: ({ instead }) => instead, value: ({ instead }) => String(instead) },
    { label: "Named by", short: "By", class: "wide", value: ({ answers: where }) => [...new Set(where.map(({ provider }) => provider))].join(", ") },
  ]).show(found);
  return [
    element("p", `${counted(found.length, "other business", "other businesses")} in answers to general questions. “Instead” counts answers that do not name ${own}.`, { class: "faint small" }),
    element("div", table, { class: "table", tabindex: "0", role: "region", "aria-label": "Other businesses" }),
  ];
}

function meter(part) {
  const made = element("i", [], { class: "amount" });
  made.style.setProperty("--part", `${100 * part}%`);
  return made;
}
