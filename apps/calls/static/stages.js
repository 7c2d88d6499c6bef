// The stages and states of a call in words.

import { duration as lasting } from "/components/format.js";

export const STAGES = ["extract_audio", "transcribe_start", "transcribe_poll", "analyze"];
export const ENDED = ["done", "failed", "cancelled"];

const NOW = {
  extract_audio: "Preparing audio",
  transcribe_start: "Starting transcription",
  transcribe_poll: "Transcribing",
  analyze: "Analysing",
};
const STATES = { queued: "Waiting", done: "Done", failed: "Failed", cancelled: "Cancelled" };
const KINDS = { queued: "waiting", processing: "active", done: "done", failed: "failed", cancelled: "cancelled" };
const languages = new Intl.DisplayNames("en", { type: "language", fallback: "code" });

export const kindOf = (status) => KINDS[status];
export const stepOf = (stage) => STAGES.indexOf(stage) + 1;
export const isEnded = (status) => ENDED.includes(status);

/** What happens to the call now. */
export function stateOf({ status, stage }) {
  return STATES[status] ?? NOW[stage] ?? "Working";
}

export function languageOf(code) {
  try {
    return languages.of(code);
  } catch {
    return code;
  }
}

/** What is known about a recording: its length, channels and language. */
export function factsOf({ duration, channels, language }) {
  return [
    duration != null && lasting(duration),
    channels != null && (channels > 1 ? "stereo" : "mono"),
    language && languageOf(language),
  ].filter(Boolean);
}
