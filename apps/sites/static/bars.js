// Scores as bars. The bar has room for the weights 0.5, 0.3 and 0.2, and each part fills its room as
// far as it goes. So the filled length is the score.

import { element } from "/components/elements.js";
import { svg } from "./svg.js";

export const PARTS = [
  ["position", "Position", 0.5, "How early the business is named: 1 for the first place, 1/2 for the second, and so on"],
  ["visibility", "Visibility", 0.3, "The share of answers that name the business"],
  ["mentions", "Mentions", 0.2, "How often it is named: 3 times or more in an answer count as 1"],
];
const HEIGHT = 8;
const GAP = 0.7;

export const exact = (number) => number.toFixed(4);

/** One score as a picture. */
export function bar(score) {
  let left = 0;
  const rooms = PARTS.map(([name, , weight]) => {
    const width = 100 * weight - (left + 100 * weight < 100 ? GAP : 0);
    const made = [
      svg("rect", { class: "room", x: left, width, height: HEIGHT, rx: 1 }),
      svg("rect", { class: `fill ${name}`, x: left, width: (width * score[name]).toFixed(2), height: HEIGHT, rx: 1 }),
    ];
    left += 100 * weight;
    return made;
  });
  return svg("svg", { class: "bar", viewBox: `0 0 100 ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": described(score) }, rooms.flat());
}

const described = (score) => `Score ${exact(score.value)}: ${PARTS.map(([name, label]) => `${label.toLowerCase()} ${exact(score[name])}`).join(", ")}`;

/** A chart with a bar for each line, and its numbers behind it. Lines have a `name`, `about` and a `score`, or null. */
export function chart(title, lines) {
  const items = lines.map(({ name, about = "", score, reason = "Not scored" }) => element("li", [
    element("span", [name, ...(about ? [" ", element("span", about, { class: "faint" })] : [])], { class: "name" }),
    ...(score ? [bar(score), element("span", score.value.toFixed(2), { class: "number value" })] : [element("span", reason, { class: "faint small reason" })]),
  ]));
  return element("figure", [element("figcaption", title), element("ul", items, { class: "bars" }), numbers(title, lines)], { class: "chart" });
}

function numbers(title, lines) {
  const scored = lines.filter(({ score }) => score);
  if (!scored.length) return "";
  const head = ["", ...PARTS.map(([, label]) => label), "Answers", "Score"];
  const rows = scored.map(({ name, score }) => element("tr", [
    element("th", name, { scope: "row" }),
    ...PARTS.map(([part]) => element("td", exact(score[part]), { class: "number" })),
    element("td", String(score.answers), { class: "number" }),
    element("td", exact(score.value), { class: "number strong" }),
  ]));
  const table = element("table", [
    element("caption", title, { class: "unseen" }),
    element("thead", element("tr", head.map((label, at) => element(at ? "th" : "td", label, at ? { scope: "col", class: "number" } : {})))),
    element("tbody", rows),
  ]);
  return element("details", [element("summary", "Numbers"), element("div", table, { class: "numbers", tabindex: "0", role: "region", "aria-label": `Numbers: ${title}` })], { class: "behind" });
}
