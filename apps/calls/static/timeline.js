// The recording as a picture: a lane for each speaker, drawn from the peaks that the server has computed.
// For assistive technology it is a slider.

import { element } from "/components/elements.js";
import { voiceOf } from "./speakers.js";
import { clock, spoken } from "./times.js";

const LOUDEST = 100;
const AXIS = 20;
// CSS pixels of a bar, and from one bar to the next.
const BAR = 2;
const STEP = 3;
const LABEL = 72;
const TICKS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600];
const KEYS = { ArrowLeft: -5, ArrowDown: -5, ArrowRight: 5, ArrowUp: 5, PageDown: -30, PageUp: 30 };

export class Timeline {
  #place;
  #picture = svg("svg", { "aria-hidden": "true", preserveAspectRatio: "none" });
  #head = element("div", [], { class: "playhead" });
  #hover = element("output", [], { class: "hover", "aria-hidden": "true" });
  #call = null;
  #time = 0;
  #seek;

  /** `seek(seconds)` is called when somebody chooses a position, and `toggle` for the space bar. */
  constructor(place, { seek, toggle }) {
    this.#place = place;
    this.#seek = seek;
    place.replaceChildren(this.#picture, this.#head, this.#hover);
    place.addEventListener("keydown", (event) => this.#press(event, toggle));
    this.#followPointer();
    new ResizeObserver(() => this.#draw()).observe(place);
  }

  /** `call` has `duration`, `peaks` by channel, `speakers` with their spans, and `overlaps`. */
  show(call) {
    this.#call = call;
    this.#place.ariaValueMax = String(Math.floor(call.duration));
    this.#place.style.setProperty("--lanes", call.speakers.length);
    this.#draw();
  }

  set time(seconds) {
    this.#time = seconds;
    if (!this.#call) return;
    const width = this.#place.clientWidth;
    this.#head.style.translate = `${snapped(width * Math.min(1, seconds / this.#call.duration))}px 0`;
    const now = String(Math.floor(seconds));
    if (this.#place.ariaValueNow === now && this.#place.ariaValueText) return;
    this.#place.ariaValueNow = now;
    this.#place.ariaValueText = `${spoken(seconds)} of ${spoken(this.#call.duration)}`;
  }

  #press(event, toggle) {
    const { key } = event;
    const edge = { Home: 0, End: this.#call?.duration }[key];
    const wanted = edge ?? (key in KEYS ? this.#time + KEYS[key] : null);
    if (wanted === null && key !== " ") return;
    event.preventDefault();
    if (wanted === null) toggle(); else this.#seek(wanted);
  }

  /** A finger that moves up or down scrolls the page, so it seeks only when it moves sideways or lifts. */
  #followPointer() {
    const place = this.#place;
    let isDown = false;
    const seek = (event) => this.#seek(this.#timeAt(event));
    place.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      isDown = true;
      if (event.pointerType === "touch") return;
      place.setPointerCapture(event.pointerId);
      seek(event);
    });
    place.addEventListener("pointermove", (event) => {
      if (isDown) seek(event);
      this.#showHover(event);
    });
    place.addEventListener("pointerup", (event) => {
      if (isDown) seek(event);
      isDown = false;
    });
    place.addEventListener("pointercancel", () => { isDown = false; });
    place.addEventListener("pointerleave", () => { this.#hover.classList.remove("shown"); });
  }

  #timeAt({ clientX }) {
    const { left, width } = this.#place.getBoundingClientRect();
    return this.#call.duration * Math.min(1, Math.max(0, (clientX - left) / width));
  }

  #showHover(event) {
    const at = event.clientX - this.#place.getBoundingClientRect().left;
    this.#hover.classList.add("shown");
    this.#hover.textContent = clock(this.#timeAt(event));
    this.#hover.style.translate = `clamp(0px, ${at}px - 50%, ${this.#place.clientWidth}px - 100%) 0`;
  }

  #draw() {
    const [width, height] = [this.#place.clientWidth, this.#place.clientHeight];
    if (!this.#call || !width) return;
    const { speakers, overlaps, duration } = this.#call;
    const lane = (height - AXIS) / speakers.length;
    this.#picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.#picture.replaceChildren(
      ...overlaps.map(({ start, end }) => svg("rect", {
        class: "overlap", x: width * start / duration, width: Math.max(2, width * (end - start) / duration), y: 0, height: height - AXIS,
      })),
      ...speakers.flatMap((speaker, at) => this.#lane(speaker, at * lane, lane, width)),
      ...ticks(duration, width).map((seconds) => tick(seconds, width * seconds / duration, height)),
    );
    this.time = this.#time;
  }

  /** The bars of a speaker: where the speaker talks, and where only the channel can be heard. Speakers
   * who share a channel are drawn only where they talk. */
  #lane({ speaker, spans }, top, height, width) {
    const { peaks, speakers, duration } = this.#call;
    const isShared = peaks.length < speakers.length;
    const loud = peaks[Math.min(speaker, peaks.length) - 1] ?? [];
    const [bar, step] = [snapped(BAR), snapped(STEP)];
    const count = Math.floor(width / step);
    const bars = { talk: "", rest: "" };
    const isTalk = talking(spans, duration / count);
    for (let at = 0; at < count; at++) {
      const isNow = isTalk(at * duration / count);
      const peak = isShared && !isNow ? 0 : loudest(loud, at / count, (at + 1) / count) / LOUDEST;
      const half = Math.max(snapped(1), snapped(peak * (height / 2 - 3)));
      const middle = snapped(top + height / 2);
      bars[isNow ? "talk" : "rest"] += `M${at * step} ${middle - half}h${bar}v${2 * half}h${-bar}z`;
    }
    return Object.entries(bars).map(([name, path]) => svg("path", { class: name, d: path, "data-voice": voiceOf(speaker) }));
  }
}

/** Whether somebody talks in the `length` seconds from a time on. Times must be asked in their order.
 * Without spans nobody knows, so all is drawn as talk. */
function talking(spans, length) {
  if (!spans) return () => true;
  const ordered = [...spans].sort((one, other) => one.start - other.start);
  let at = 0;
  return (time) => {
    while (at < ordered.length && ordered[at].end <= time) at++;
    return at < ordered.length && ordered[at].start < time + length;
  };
}

function loudest(peaks, from, to) {
  const [first, last] = [Math.floor(from * peaks.length), Math.max(Math.floor(from * peaks.length) + 1, Math.ceil(to * peaks.length))];
  let most = 0;
  for (let at = first; at < last && at < peaks.length; at++) most = Math.max(most, peaks[at]);
  return most;
}

function ticks(duration, width) {
  const step = TICKS.find((seconds) => width * seconds / duration >= LABEL) ?? 7_200;
  return Array.from({ length: Math.ceil(duration / step) }, (_, at) => at * step).filter((seconds) => width * (1 - seconds / duration) > LABEL / 2);
}

function tick(seconds, x, height) {
  const label = svg("text", { class: "tick", x: seconds ? x : 0, y: height - 5, "text-anchor": seconds ? "middle" : "start" });
  label.textContent = clock(seconds);
  return label;
}

/** The nearest length or place on the grid of the screen's pixels, so that edges are sharp. */
function snapped(length) {
  return Math.round(length * devicePixelRatio) / devicePixelRatio;
}

export function svg(tag, attributes = {}, content = []) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...content);
  return made;
}
