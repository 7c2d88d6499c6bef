// Sentences of the transcript, each with a link to its moment and the method that found it.

import { element } from "/components/elements.js";
import { counted } from "/components/format.js";
import { nameOf, voiceOf } from "./speakers.js";
import { clock, momentHash } from "./times.js";

const MOST = 5;
const METHODS = {
  textrank: ["TextRank", "Sentences that share the most words with the others"],
  "c-value": ["C-value", "Phrases that occur often, and not only inside longer ones"],
  rules: ["rules", "Typical English wordings"],
  lexicon: ["lexicon", "Words that are known to be positive or negative"],
  speech: ["measured", "Measured in the recording"],
  words: ["word times", "From the times of the words"],
  segments: ["segment times", "From the times of the segments"],
  estimate: ["estimated", "The transcript has no times, so they are estimated from the length of the text"],
};

/** A link to a moment, as its time. */
export function moment({ start, speaker }) {
  return element("a", [element("span", "Play from ", { class: "unseen" }), clock(start)], {
    class: "time", href: momentHash(start), "data-voice": voiceOf(speaker),
  });
}

/** A quote as an item of a list: what it is, who says it and when, and the method. `text` is what a
 * model wrote about the quote, if that is not the quote itself. */
export function quoteItem({ quote, method }, { text = quote.text, notes = [] } = {}) {
  const said = text === quote.text ? [element("q", text)] : [text, element("q", quote.text, { class: "source" })];
  const facts = [nameOf(quote.speaker), ...notes].flatMap((each) => [each, " · "]);
  return element("li", [
    moment(quote),
    element("div", [element("p", said), element("p", [...facts, methodOf(method)], { class: "facts" })]),
  ], { "data-voice": voiceOf(quote.speaker) });
}

/** How something was found, in words. The name of a model is shown as it is. */
export function methodOf(method) {
  const [name, meaning] = METHODS[method] ?? [method, "Written by this model"];
  return element("span", name, { class: "method", title: meaning });
}

/** A list of which only the first items are shown, until somebody asks for all. */
export function quoteList(items, things) {
  const list = element("ul", items, { class: "quotes" });
  if (items.length <= MOST + 1) return [list];
  const rest = items.slice(MOST);
  for (const item of rest) item.classList.add("later");
  const more = element("button", `Show all ${counted(items.length, things, things)}`, { type: "button", class: "button plain more" });
  more.onclick = () => {
    for (const item of rest) item.classList.remove("later");
    rest[0].querySelector("a").focus();
    more.remove();
  };
  return [list, more];
}
