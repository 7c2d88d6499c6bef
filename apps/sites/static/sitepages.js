// The pages of the website, and what came of reading each.

import { element } from "/components/elements.js";
import { bytes, counted, duration } from "/components/format.js";
import { Table } from "/components/table.js";

const OUTCOMES = {
  read: ["Read", "good"],
  duplicate: ["Duplicate", ""],
  not_html: ["Not HTML", ""],
  disallowed: ["Disallowed", "warn"],
  off_site: ["Other site", ""],
  too_large: ["Too large", "warn"],
  too_slow: ["Too slow", "warn"],
  trap: ["Endless", "warn"],
  failed: ["Failed", "bad"],
};
const STOPS = { pages: "on pages", bytes: "on bytes", time: "on time" };
const COLUMNS = [
  { label: "Page", class: "wide", value: ({ url, title }) => [pageLink(url), ...(title ? [element("small", title)] : [])] },
  { label: "Outcome", class: "wide outcome", value: ({ outcome, reason, duplicateOf }) => [badge(outcome), ...(reason || duplicateOf ? [element("small", [reason ?? "Same as ", ...(!reason && duplicateOf ? [pageLink(duplicateOf)] : [])])] : [])] },
  { label: "Words", short: "Words", class: "number", sort: ({ words }) => words, value: ({ outcome, words }) => (outcome === "read" ? words.toLocaleString() : "") },
  { label: "Size", short: "Size", class: "number", sort: ({ bytes: size }) => size, value: ({ bytes: size }) => (size ? bytes(size) : "") },
  { label: "Time", short: "Time", class: "number", sort: ({ seconds }) => seconds, value: ({ seconds }) => (seconds ? duration(seconds) : "") },
];

export function pages({ report: { website } }) {
  const table = element("table", [element("thead"), element("tbody")]);
  new Table(table, COLUMNS).show(website.pages);
  return [about(website), element("div", table, { class: "table site-pages", tabindex: "0", role: "region", "aria-label": "Table of pages" })];
}

function about({ pages: found, seconds, stoppedBy, robots, sitemap, hasLlmsTxt }) {
  const parts = [
    `${counted(found.length, "address", "addresses")} in ${duration(seconds)}.`,
    ...(stoppedBy ? [`There are more: the limit ${STOPS[stoppedBy] ?? stoppedBy} was reached.`] : []),
    `robots.txt: ${robots.state}${robots.crawlDelay ? `, with a delay of ${robots.crawlDelay} s` : ""}.`,
    `Sitemap: ${sitemap ? "yes" : "no"}. llms.txt: ${hasLlmsTxt ? "yes" : "no"}.`,
  ];
  return element("p", parts.join(" "), { class: "faint small" });
}

function badge(outcome) {
  const [label, kind] = OUTCOMES[outcome] ?? [outcome, ""];
  return element("span", label, { class: `badge ${kind}`.trim() });
}

/** The path of an address as a link, if a browser opens it as a page. `start` is what `/` is called. */
export function pageLink(url, { start = "/" } = {}) {
  let path = url;
  try {
    const { pathname, search, protocol } = new URL(url);
    if (!/^https?:$/.test(protocol)) return url;
    path = pathname + search === "/" ? start : decodeURI(pathname + search);
  } catch {
    if (!/^https?:\/\//.test(url)) return url;
  }
  return element("a", path, { href: url, title: url, class: "page-link", rel: "noreferrer nofollow" });
}
