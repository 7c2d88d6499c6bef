// The files of a call as a menu.

import { element } from "/components/elements.js";

const ITEMS = [
  ["audio", "Audio", "OGG Opus", "/audio", ".ogg"],
  ["transcript", "Transcript", "text", "/transcript?format=txt", ".txt"],
  ["transcript", "Subtitles", "SRT", "/transcript?format=srt", ".srt"],
  ["transcript", "Subtitles", "WebVTT", "/transcript?format=vtt", ".vtt"],
  ["transcript", "Words with times", "JSON", "/transcript?format=json", ".words.json"],
  ["analysis", "Analysis", "JSON", "/analysis", ".analysis.json"],
];

/** The items for the kinds of files that the call has. Files are named after the call. */
export function downloadsOf(address, call, kinds) {
  const stem = call.replace(/\.[^.]{1,5}$/, "");
  return ITEMS.filter(([kind]) => kinds.includes(kind)).map(([, name, format, path, ending]) => {
    const link = element("a", [name, " ", element("span", format, { class: "faint" })], { href: address + path, download: stem + ending });
    return element("li", link);
  });
}
