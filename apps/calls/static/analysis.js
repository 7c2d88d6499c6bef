// The analysis of a call, section by section.

import { element } from "/components/elements.js";
import { counted, duration as lasting } from "/components/format.js";
import { methodOf, moment, quoteItem, quoteList } from "./quotes.js";
import { curves, mood } from "./sentiment.js";
import { nameOf, voiceOf } from "./speakers.js";
import { momentHash, spoken } from "./times.js";

const EXTREMES = 2;
const KINDS = { promise: "Promise", request: "Request" };

/** All sections as elements. `seek(seconds)` is called by a click on a curve. */
export function sectionsOf(analysis, seek) {
  return [
    section("Summary", analysis.summary, summary(analysis)),
    section("Action items", analysis.actionItems, actions(analysis.actionItems)),
    section("Talk time", analysis.talk, talk(analysis.talk)),
    section("Sentiment", analysis.sentiment, sentiment(analysis, seek)),
    section("Key phrases", analysis.keyPhrases, phrases(analysis.keyPhrases)),
    section("Questions", analysis.questions, questions(analysis.questions)),
  ];
}

/** A method such as "none: not English" says why there is nothing. */
function section(title, { method }, content) {
  const reason = method.startsWith("none: ") ? method.slice("none: ".length) : null;
  const head = element("div", [element("h2", title), ...(reason ? [] : [methodOf(method)])], { class: "head" });
  const nothing = element("p", reason ? `Not available: ${reason}.` : "None found.", { class: "faint" });
  return element("section", [head, ...(content.length ? content : [nothing])], { class: "card" });
}

function summary({ summary: { items, unverified }, modelError, unreadSeconds }) {
  const list = quoteList(items.map((item) => quoteItem(item, { text: item.text })), "sentences");
  return [
    ...(items.length ? list : []),
    ...unchecked(unverified),
    ...(modelError ? [note(`The model wrote nothing (${modelError}), so this summary was made without it.`)] : []),
    ...(unreadSeconds ? [note(`The model did not read the last ${lasting(unreadSeconds)}.`)] : []),
  ];
}

function actions({ items, unverified }) {
  const list = items.map((item) => quoteItem(item, {
    text: item.text,
    notes: [KINDS[item.kind], item.assignee && item.assignee !== item.quote.speaker && `for ${nameOf(item.assignee)}`, item.due && `due ${item.due}`].filter(Boolean),
  }));
  return [...(items.length ? quoteList(list, "action items") : []), ...unchecked(unverified)];
}

/** What a model wrote without a quote that is in the transcript is not shown, but counted. */
function unchecked(count) {
  return count ? [note(`${counted(count, "sentence")} of the model could not be verified, and ${count === 1 ? "is" : "are"} left out.`)] : [];
}

function talk({ speakers, ratio, overlaps, overlapSeconds, silenceSeconds, longestMonologue: longest }) {
  if (!speakers.length) return [];
  const figures = [
    ratio !== null && ["Ratio", `${ratio.toFixed(2)} : 1`],
    ["Silence", lasting(silenceSeconds)],
    ["Overlapping speech", overlaps.length ? `${overlapSeconds < 1 ? `${overlapSeconds.toFixed(1)} s` : lasting(overlapSeconds)}, ${times(overlaps.length)}` : "never"],
    longest && ["Longest monologue", [`${nameOf(longest.speaker)}, ${lasting(longest.seconds)} `, moment(longest)]],
  ].filter(Boolean);
  return [
    element("ul", speakers.map((each, at) => share(each, percents(speakers)[at])), { class: "shares" }),
    element("dl", figures.map(([name, value]) => element("div", [element("dt", name), element("dd", value)])), { class: "figures" }),
  ];
}

const times = (count) => (count === 1 ? "once" : counted(count, "time"));

/** Whole numbers whose sum is 100: those with the largest rest are rounded up. */
function percents(speakers) {
  const exact = speakers.map(({ share: part }) => 100 * part);
  const whole = exact.map(Math.floor);
  const order = exact.map((each, at) => at).sort((one, other) => exact[other] % 1 - exact[one] % 1);
  const missing = Math.round(exact.reduce((sum, each) => sum + each, 0)) - whole.reduce((sum, each) => sum + each, 0);
  for (const at of order.slice(0, missing)) whole[at] += 1;
  return whole;
}

function share({ speaker, name, seconds, share: part }, percent) {
  const bar = element("i");
  bar.style.setProperty("--part", `${100 * part}%`);
  const text = element("span", [element("b", name), element("span", `${lasting(seconds)} · ${percent} %`, { class: "number faint" })]);
  return element("li", [text, bar], { "data-voice": voiceOf(speaker) });
}

function sentiment({ sentiment: { speakers, points }, duration }, seek) {
  const heard = speakers.filter(({ score }) => score !== null);
  if (!heard.some(({ curve }) => curve.length)) return [];
  const ordered = [...points].sort((one, other) => one.score - other.score);
  const low = ordered.slice(0, EXTREMES).filter(({ score }) => score < 0);
  const high = ordered.slice(-EXTREMES).filter(({ score }) => score > 0).reverse();
  const means = heard.map(({ speaker, name, score }) => element("li", [
    element("b", name), ` ${mood(score)} `, element("span", signed(score), { class: "number faint" }),
  ], { "data-voice": voiceOf(speaker) }));
  const extremes = [...high, ...low].map((point) => quoteItem(point, { notes: [signed(point.score), point.words.join(", ")].filter(Boolean) }));
  return [
    element("div", [curves({ speakers: heard }, duration, seek)], { class: "chart" }),
    element("ul", means, { class: "means" }),
    ...(extremes.length ? [element("ul", extremes, { class: "quotes" })] : []),
  ];
}

function signed(score) {
  return `${score < 0 ? "−" : "+"}${Math.abs(score).toFixed(2)}`;
}

function phrases({ items }) {
  if (!items.length) return [];
  return [element("ul", items.map(({ phrase, count, quote, method }) => element("li", element("a", [
    phrase, " ", element("span", `${count}×`, { class: "number faint" }),
  ], { href: momentHash(quote.start), title: `“${quote.text}” (${method})`, "aria-label": `${phrase} ${count}×, play from ${spoken(quote.start)}` }))), { class: "phrases" })];
}

function questions({ items }) {
  return items.length ? quoteList(items.map((item) => quoteItem(item)), "questions") : [];
}

function note(text) {
  return element("p", text, { class: "faint small" });
}
