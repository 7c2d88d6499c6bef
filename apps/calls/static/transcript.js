// The words of a call. They follow the playback, and jump to a moment on a click.

import { element } from "/components/elements.js";
import { nameOf, voiceOf } from "./speakers.js";
import { clock, momentHash } from "./times.js";

// Seconds. A longer turn is split after a sentence, so that the margin has another time. Some
// transcripts have no sentences.
const LONG_TURN = 30;
const LONGEST_TURN = 60;
// Seconds. A word stays marked in the pause after it.
const PAUSE = 0.6;
const LONGEST_WORD = 10;
// Seconds. A moment in an address may be that much before its word.
const ROUNDED = 0.06;
const STILL = matchMedia("(prefers-reduced-motion: reduce)");
const SCROLL_KEYS = ["PageUp", "PageDown", "Home", "End"];

export class Transcript {
  #list;
  #again;
  #jump;
  #words = [];
  #current = new Set();
  #isFollowing = true;

  /** `jump(seconds)` is called when somebody chooses a word. `again` is the button that is shown while
   * the text does not follow. */
  constructor(list, again, jump) {
    this.#list = list;
    this.#again = again;
    this.#jump = jump;
    list.addEventListener("click", ({ target }) => this.#choose(target.closest(".word")));
    list.addEventListener("keydown", (event) => this.#press(event));
    for (const type of ["wheel", "touchmove"]) list.addEventListener(type, () => this.#stop(), { passive: true });
    // A click on the list itself is one on its scroll bar.
    list.addEventListener("pointerdown", ({ target }) => { if (target === list) this.#stop(); });
    again.onclick = () => {
      list.focus({ preventScroll: true });
      this.follow();
    };
  }

  show({ segments }) {
    const turns = turnsOf(segments);
    this.#words = turns.flatMap(({ words }) => words);
    this.#list.replaceChildren(...turns.map(turn));
    // Overlapping turns have words that begin before the last word of the turn before.
    this.#words.sort((one, other) => one.start - other.start);
    if (!turns.length) this.#list.append(element("li", "Nobody says anything in this recording.", { class: "faint" }));
  }

  /** Marks what is said now, and scrolls to it if it follows. */
  set time(seconds) {
    const now = this.#wordsAt(seconds + ROUNDED);
    if (now.length === this.#current.size && now.every((word) => this.#current.has(word))) return;
    for (const { place } of this.#current) place.classList.remove("now");
    for (const { place } of now) place.classList.add("now");
    this.#current = new Set(now);
    if (this.#isFollowing) this.#scroll(now.at(-1));
  }

  /** Follows the playback again, from now on. */
  follow() {
    this.#isFollowing = true;
    this.#again.hidden = true;
    this.#scroll([...this.#current].at(-1));
  }

  /** Scrolls to a moment, whether or not something is said there. */
  reveal(seconds) {
    this.#isFollowing = true;
    this.#again.hidden = true;
    this.#scroll(this.#words[Math.max(0, this.#after(seconds + ROUNDED) - 1)]);
  }

  #stop() {
    if (this.#list.scrollHeight <= this.#list.clientHeight) return;
    this.#isFollowing = false;
    this.#again.hidden = false;
  }

  #choose(place) {
    const word = place && this.#words.find((each) => each.place === place);
    if (word) this.#jump(word.start);
  }

  /** One tab stop for all words: arrow keys move between words and turns. */
  #press(event) {
    if (SCROLL_KEYS.includes(event.key)) return this.#stop();
    const focused = document.activeElement.closest(".word");
    const places = [...this.#list.querySelectorAll(".word")];
    const first = [...this.#current].at(-1)?.place ?? places[0];
    const wanted = {
      ArrowRight: () => (focused ? places[places.indexOf(focused) + 1] : first),
      ArrowLeft: () => (focused ? places[places.indexOf(focused) - 1] : first),
      ArrowDown: () => (focused ? focused.closest("li").nextElementSibling?.querySelector(".word") : first),
      ArrowUp: () => (focused ? focused.closest("li").previousElementSibling?.querySelector(".word") : first),
      Enter: () => focused,
    }[event.key]?.();
    if (!wanted) return;
    event.preventDefault();
    if (event.key === "Enter") return this.#choose(wanted);
    this.#stop();
    wanted.focus();
  }

  /** The word of each speaker that is said now. In a short pause, the word before it. */
  #wordsAt(seconds) {
    const found = new Map();
    for (let at = this.#after(seconds) - 1; at >= 0 && this.#words[at].start > seconds - LONGEST_WORD; at--) {
      const word = this.#words[at];
      if (!found.has(word.speaker)) found.set(word.speaker, word);
    }
    const [last, ...others] = found.values();
    const now = [last, ...others].filter((word) => word && seconds < word.end).reverse();
    return now.length || !last || seconds > last.end + PAUSE ? now : [last];
  }

  /** The number of words that begin until then. */
  #after(seconds) {
    let [low, high] = [0, this.#words.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#words[middle].start <= seconds) low = middle + 1; else high = middle;
    }
    return low;
  }

  /** Keeps the word in the middle third. Scrolls only the list, not the page. */
  #scroll(word) {
    if (!word) return;
    const [list, place] = [this.#list.getBoundingClientRect(), word.place.getBoundingClientRect()];
    const at = place.top - list.top;
    if (at > list.height / 4 && at < list.height * 0.6) return;
    this.#list.scrollBy({ top: at - list.height / 3, behavior: Math.abs(at) > 2 * list.height || STILL.matches ? "instant" : "smooth" });
  }
}

/** Joins the segments of one speaker to turns, with the time of each word. */
function turnsOf(segments) {
  const turns = [];
  for (const segment of segments) {
    const words = wordsOf(segment);
    const last = turns.at(-1);
    if (!words.length) continue;
    if (last?.speaker === segment.speaker && !isLong(last, segment.end)) last.words.push(...words);
    else turns.push({ speaker: segment.speaker, start: segment.start, isSame: last?.speaker === segment.speaker, words });
  }
  return turns;
}

function isLong({ start, words }, end) {
  return end - start > (/[.?!…]$/.test(words.at(-1).text) ? LONG_TURN : LONGEST_TURN);
}

/** The words of a segment. If it has no times for them, they are spread by their length. */
function wordsOf({ speaker, start, end, text, words }) {
  const texts = text.split(/\s+/).filter(Boolean);
  if (texts.length === words.length) return texts.map((each, at) => ({ speaker, text: each, start: words[at].start, end: words[at].end }));
  const letters = texts.reduce((sum, each) => sum + each.length, 0);
  let before = 0;
  return texts.map((each) => {
    const from = start + (end - start) * before / letters;
    before += each.length;
    return { speaker, text: each, start: from, end: start + (end - start) * before / letters };
  });
}

function turn({ speaker, start, isSame, words }) {
  const said = element("p", [], { class: "said" });
  for (const word of words) {
    word.place = element("span", word.text, { class: "word", tabindex: "-1" });
    said.append(word.place, " ");
  }
  const time = element("a", [element("span", "Play from ", { class: "unseen" }), clock(start)], { class: "time", href: momentHash(start), tabindex: "-1" });
  const name = element("b", nameOf(speaker), { class: isSame ? "unseen" : "name" });
  return element("li", [time, element("div", [name, said])], { class: "turn", "data-voice": voiceOf(speaker) });
}
