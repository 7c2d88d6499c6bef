// Tokens and their cost, for each model and in total.

import { element } from "/components/elements.js";
import { Table } from "/components/table.js";

const COLUMNS = [
  { label: "Model", class: "wide", value: ({ provider, model }) => [element("b", provider), " ", element("span", model, { class: "faint" })] },
  { label: "Input tokens", short: "Input", class: "number", value: ({ use: { promptTokens } }) => promptTokens.toLocaleString() },
  { label: "Output tokens", short: "Output", class: "number", value: ({ use: { completionTokens } }) => completionTokens.toLocaleString() },
  { label: "US dollars", short: "$", class: "number", value: ({ use: { cost } }) => dollars(cost) },
];

export function use({ report: { modelAnalysis: { providers, use: total } }, run }) {
  if (!providers.length) return null;
  const table = element("table", [element("thead"), element("tbody")]);
  new Table(table, COLUMNS).show([...providers, { provider: "Total", model: "", use: total }]);
  const paid = run.usage?.usd;
  return [
    element("div", table, { class: "table", tabindex: "0", role: "region", "aria-label": "Table of tokens and cost" }),
    element("p", [
      providers.some(({ use: { cost } }) => cost === null) ? "Models without prices in the settings have no cost. " : "",
      paid != null && Number(paid) > Number(total.cost ?? 0) ? `With answers that could not be used, the run has cost ${dollars(paid)} US dollars.` : "",
    ].join(""), { class: "faint small" }),
  ];
}

const dollars = (cost) => (cost == null ? "–" : Number(cost).toFixed(6).replace(/0{1,4}$/, ""));
