// The local checks: what to improve first, then what could not be checked, then what passed. In each
// part, those that matter most come first.

import { element } from "/components/elements.js";
import { counted } from "/components/format.js";
import { pageLink } from "./sitepages.js";

const STATES = { fail: "Fix", warn: "Improve", unknown: "Unknown", pass: "Passed" };
const MOST_PAGES = 3;

export function checks({ report: { website: { checks: found } } }) {
  const sorted = [...found].sort((one, other) => other.weight - one.weight);
  const those = (...states) => sorted.filter(({ state }) => states.includes(state));
  const open = those("fail", "warn");
  return [
    open.length ? list(open, "To improve") : element("p", "There is nothing to improve."),
    ...folded("could not be done", those("unknown")),
    ...folded("passed", those("pass")),
  ];
}

function folded(what, found) {
  if (!found.length) return [];
  return [element("details", [element("summary", `${counted(found.length, "check")} ${what}`), list(found, what)], { class: "more-checks" })];
}

const list = (found, label) => element("ul", found.map(item), { class: "checks", "aria-label": label });

function item({ id, title, state, weight, reason, fix, pages }) {
  return element("li", [
    element("div", [
      element("span", STATES[state], { class: `state ${state}` }),
      element("h3", title),
      element("span", ["Weight ", meter(weight)], { class: "weight" }),
    ], { class: "check-head" }),
    element("p", reason),
    ...(fix ? [element("p", fix, { class: "fix" })] : []),
    ...(pages.length ? [pagesOf(pages)] : []),
  ], { class: state, "data-check": id });
}

function meter(weight) {
  const made = element("span", String(weight), { class: "meter number" });
  made.style.setProperty("--part", `${10 * weight}%`);
  return made;
}

function pagesOf(pages) {
  const links = (some) => element("ul", some.map((page) => element("li", pageLink(page))), { class: "check-pages" });
  if (pages.length <= MOST_PAGES) return links(pages);
  return element("details", [element("summary", counted(pages.length, "page")), links(pages)], { class: "small" });
}
