// What has changed since another run of the same site.

import { busy } from "/components/actions.js";
import { element } from "/components/elements.js";
import { call } from "/components/http.js";
import { complain } from "/components/toast.js";
import { pageLink } from "./sitepages.js";

const FACTS = {
  businessName: "Name", industry: "Industry", location: "Location", description: "Description", address: "Address", keywords: "Keywords", openingHours: "Opening hours", emails: "E-mail", phones: "Telephone",
};
const STATES = { pass: "passed", warn: "improve", fail: "fix", unknown: "unknown" };

export function changes({ run, address, report }) {
  if (!run.otherRuns.length) return null;
  const result = element("div", [], { class: "comparison" });
  const select = element("select", run.otherRuns.map((other) => element("option", nameOf(other), { value: other.id })), { id: "compare-with" });
  const button = element("button", "Compare", { class: "button quiet" });
  const form = element("form", [element("div", [element("label", "Compare with the run of", { for: "compare-with" }), select], { class: "field" }), button], { class: "filters compare" });
  const texts = new Map(report.prompts.map(({ id, text }) => [id, text]));

  const show = async () => {
    const found = await call(`${address}/compare?with=${select.value}`);
    result.replaceChildren(...comparison(found, texts));
    const here = new URL(location);
    here.searchParams.set("with", select.value);
    history.replaceState(null, "", here);
  };
  form.onsubmit = (event) => {
    event.preventDefault();
    busy(button, show);
  };
  const asked = new URLSearchParams(location.search).get("with");
  if (run.otherRuns.some(({ id }) => id === asked)) {
    select.value = asked;
    show().catch(complain);
  }
  return [form, result];
}

const nameOf = ({ finishedAt, createdAt, result }) => `${new Date(finishedAt ?? createdAt).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" })}${result?.score == null ? "" : ` · ${result.score.toFixed(2)}`}`;

function comparison({ score, providers, prompts, facts, checks, pagesAdded, pagesRemoved }, texts) {
  const parts = [
    scores([["The whole run", score], ...providers.map((each) => [each.name, each]), ...prompts.map((each) => [texts.get(each.name) ?? each.name, each])]),
    group("Facts", facts.map(({ fact, before, after }) => change(FACTS[fact] ?? fact, before.join(", "), after.join(", ")))),
    group("Checks", checks.map(({ title, before, after }) => change(title, STATES[before] ?? "", STATES[after] ?? "", after))),
    group("New pages", pagesAdded.map((page) => element("li", pageLink(page)))),
    group("Pages that are gone", pagesRemoved.map((page) => element("li", pageLink(page)))),
  ].filter(Boolean);
  return parts.length ? parts : [element("p", "Nothing has changed.", { class: "faint" })];
}

function scores(lines) {
  const known = lines.filter(([, { before, after }]) => before !== null || after !== null);
  if (!known.length) return null;
  return element("table", [
    element("caption", "Scores", { class: "unseen" }),
    element("thead", element("tr", ["", "Before", "Now", "Change"].map((label, at) => element(at ? "th" : "td", label, at ? { scope: "col", class: "number" } : {})))),
    element("tbody", known.map(([name, each]) => element("tr", [
      element("th", name, { scope: "row" }),
      element("td", number(each.before), { class: "number faint" }),
      element("td", number(each.after), { class: "number" }),
      element("td", delta(each.change), { class: "number" }),
    ]))),
  ], { class: "changes" });
}

const number = (value) => (value === null ? "–" : value.toFixed(2));

function delta(value) {
  if (value === null) return "";
  if (value === 0) return element("span", "0", { class: "faint" });
  return element("span", `${value > 0 ? "▲ +" : "▼ −"}${Math.abs(value).toFixed(2)}`, { class: value > 0 ? "better" : "worse" });
}

function group(title, items) {
  return items.length ? element("div", [element("h3", title), element("ul", items)]) : null;
}

function change(name, before, after, state = "") {
  return element("li", [
    element("b", name), " ",
    before ? element("del", before) : element("span", "none", { class: "faint" }), " → ",
    after ? element("ins", after, state ? { class: state } : {}) : element("span", "none", { class: "faint" }),
  ]);
}
