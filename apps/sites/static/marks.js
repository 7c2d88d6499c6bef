// The text of an answer with the business marked in it.

import { element } from "/components/elements.js";

/** Strings and elements. Mentions count Unicode code points; the strings of JavaScript count UTF-16 units. */
export function marked(text, mentions) {
  const letters = [...text];
  const parts = [];
  let done = 0;
  for (const mention of [...mentions].sort((one, other) => one.start - other.start)) {
    if (mention.start < done) continue;
    parts.push(letters.slice(done, mention.start).join(""), element("mark", letters.slice(mention.start, mention.end).join(""), { title: placeOf(mention) }));
    done = mention.end;
  }
  return [...parts, letters.slice(done).join("")].filter((part) => part !== "");
}

function placeOf({ rank, rankedBy, kind }) {
  const what = kind === "domain" ? "The domain" : "The name";
  return `${what}, in ${rankedBy === "business" ? `place ${rank} of the businesses` : `sentence ${rank}`}`;
}
