// The sentiment of each speaker over time, as curves.

import { voiceOf } from "./speakers.js";
import { svg } from "./timeline.js";

const WIDTH = 400;
const HEIGHT = 96;
const MARGIN = 6;
// Scores are from -1 to 1, and means over time are seldom near them. Smaller changes look small.
const LEAST = 0.5;

/** A picture with neutral in the middle. A click on it calls `seek` with the time. */
export function curves({ speakers }, duration, seek) {
  const x = (time) => (WIDTH * time / duration).toFixed(1);
  const most = Math.max(LEAST, ...speakers.flatMap(({ curve }) => curve.map(({ score }) => Math.abs(score))));
  const y = (score) => (HEIGHT / 2 - score / most * (HEIGHT / 2 - MARGIN)).toFixed(1);
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", class: "curves", role: "img", "aria-label": described(speakers) }, [
    svg("path", { class: "zero", d: `M0 ${y(0)}H${WIDTH}` }),
    ...speakers.filter(({ curve }) => curve.length).map(({ speaker, curve }) => svg("path", {
      class: "curve", "data-voice": voiceOf(speaker), d: line(curve.map(({ time, score }) => `${x(time)} ${y(score)}`)),
    })),
  ]);
  picture.addEventListener("click", (event) => {
    const { left, width } = picture.getBoundingClientRect();
    seek(duration * (event.clientX - left) / width);
  });
  return picture;
}

/** A single point becomes a dot. */
function line(points) {
  return `M${points.join("L")}${points.length > 1 ? "" : "h.01"}`;
}

function described(speakers) {
  const each = speakers.filter(({ score }) => score !== null).map(({ name, score }) => `${name} ${score.toFixed(2)}`);
  return `Sentiment over time from minus 1 to 1. Mean: ${each.join(", ")}.`;
}

/** 0.3 is "positive". */
export function mood(score) {
  if (Math.abs(score) < 0.05) return "neutral";
  const strength = Math.abs(score) < 0.25 ? "slightly " : "";
  return strength + (score > 0 ? "positive" : "negative");
}
