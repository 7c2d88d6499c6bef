// What the site says about its business, each fact with the page and the words that it was made from.

import { element } from "/components/elements.js";
import { pageLink } from "./sitepages.js";

const LINES = [
  ["Name", ({ businessName }) => businessName],
  ["Industry", ({ industry }) => industry],
  ["Location", ({ location }) => location],
  ["Description", ({ description }) => description],
  ["Keywords", ({ keywords }) => keywords],
  ["Opening hours", ({ openingHours }) => openingHours],
  ["Address", ({ contact }) => contact.address],
  ["Telephone", ({ contact }) => contact.phones],
  ["E-mail", ({ contact }) => contact.emails],
];
const METHODS = {
  "json-ld": "JSON-LD", microdata: "Microdata", rdfa: "RDFa", opengraph: "Open Graph", meta: "Meta tag", title: "Title", heading: "Heading", text: "Text",
};
// Many short values look better beside each other.
const CHIPS = ["Keywords"];

export function facts({ report: { website: { facts: found } } }) {
  return element("dl", LINES.map(([label, read]) => line(label, [read(found) ?? []].flat())), { class: "facts" });
}

function line(label, values) {
  const unknown = element("p", "Not stated on the site", { class: "faint unknown" });
  return element("div", [element("dt", label), element("dd", values.length ? groups(label, values) : unknown)]);
}

/** Values with the same source, such as the keywords of one tag, share its line. */
function groups(label, values) {
  const found = new Map();
  for (const each of values) {
    const key = `${each.page} ${each.method}`;
    found.set(key, [...(found.get(key) ?? []), each]);
  }
  return [...found.values()].map((group) => element("div", [
    element("ul", group.map(value), { class: CHIPS.includes(label) ? "chips" : "values" }),
    source(group[0]),
  ]));
}

/** The words are shown where they differ from the value. Values of structured data have a line each. */
function value({ value: text, words }) {
  const quoted = words.split("\n").join(" · ");
  return element("li", [element("span", text), ...(quoted === text ? [] : [" ", element("q", quoted, { class: "words" })])]);
}

function source({ page, method, words, value: text }) {
  const how = words === text ? "word for word in " : "made from the words in ";
  return element("p", [element("span", METHODS[method] ?? method, { class: "method", title: `${how}${METHODS[method] ?? method}` }), " ", pageLink(page, { start: "start page" })], { class: "source" });
}
