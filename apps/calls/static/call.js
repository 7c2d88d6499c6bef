// The page of one call: watch it, listen to it, read it.

import { busy, confirmed } from "/components/actions.js";
import { showConnection } from "/components/connection.js";
import { $, announce, element, hide } from "/components/elements.js";
import { ago } from "/components/format.js";
import { call, post } from "/components/http.js";
import { closable } from "/components/menu.js";
import { Rows } from "/components/rows.js";
import { follow } from "/components/stream.js";
import { complain } from "/components/toast.js";
import { sectionsOf } from "./analysis.js";
import { downloadsOf } from "./downloads.js";
import { Player } from "./player.js";
import { creditOf } from "./providers.js";
import { openSession } from "./sessions.js";
import { speakersOf, voiceOf } from "./speakers.js";
import { ENDED, factsOf, isEnded, kindOf, STAGES, stateOf, stepOf } from "./stages.js";
import { Timeline } from "./timeline.js";
import { clock, momentIn } from "./times.js";
import { Transcript } from "./transcript.js";

const id = location.pathname.split("/").at(-1);
const address = `/api/calls/${id}`;
const AGAIN_MS = 3_000;

const stages = new Rows($("stages"));
const player = new Player($("audio"), { play: $("play"), back: $("back"), ahead: $("ahead"), speed: $("speed"), problem: $("silent") }, moved);
const timeline = new Timeline($("timeline"), { seek: (seconds) => player.seek(seconds), toggle: () => player.toggle() });
const transcript = new Transcript($("transcript"), $("follow"), jump);
let shown = null;
let stream = null;
// The contents of files by kind. They are loaded once each.
const files = {};
let loaded = Promise.resolve();

closable($("downloads"));
// The player stays at the top, and the transcript below it.
new ResizeObserver(() => document.documentElement.style.setProperty("--player", `${$("player").offsetHeight}px`)).observe($("player"));

// Watching

function open() {
  stream?.close();
  stream = follow(`${address}/stream`, {
    read: (signal) => call(address, { signal }),
    show: take,
    last: ({ lastEventId }) => lastEventId,
    isOver: ({ status }) => isEnded(status),
    on: HEED,
    ends: ENDED,
    changed: show,
    state: (name, error) => {
      showConnection($("connection"), name);
      if (name === "failed") fail(error);
    },
  });
}

function fail(error) {
  $("loading").hidden = true;
  if (error.status === 401) return start();
  if (shown) return complain(error);
  const isGone = [404, 422].includes(error.status);
  $("gone").hidden = !isGone;
  if (!isGone) $("problem").textContent = error.message;
}

function take(state) {
  shown = state;
  $("loading").hidden = true;
  $("call").hidden = false;
  show();
  loadFiles();
}

const end = ({ status, error = null }) => {
  Object.assign(shown, { status, error, percent: null, problem: null });
  refresh();
};
const HEED = {
  stage: ({ status, stage }) => {
    const isNew = stage !== shown.stage;
    Object.assign(shown, { status, stage, error: null, problem: null, ...(isNew && { percent: null, message: null }) });
    // A stage that is over has left files.
    if (isNew) refresh();
  },
  progress: ({ stage, percent, message }) => Object.assign(shown, { stage, percent, message }),
  retrying: ({ message }) => Object.assign(shown, { status: "queued", percent: null, problem: message }),
  done: end,
  failed: end,
  cancelled: end,
  reload: () => stream.restart(),
};

/** Reads what events do not have: the files, the length and the channels. */
async function refresh() {
  try {
    const { files: found, duration, channels } = await call(address);
    Object.assign(shown, { files: found, duration, channels });
    show();
    loadFiles();
  } catch (error) {
    if (!error.isFinal) setTimeout(refresh, AGAIN_MS);
  }
}

function show() {
  const { name, status, error } = shown;
  document.title = `${name} · Calls`;
  $("title").textContent = name;
  $("about").replaceChildren(...about());
  hide($("cancel"), isEnded(status), $("title"));
  hide($("remove"), !isEnded(status), $("title"));
  hide($("failure"), status !== "failed", $("title"));
  $("failure-text").textContent = error?.message ?? "";
  $("failure-code").textContent = error?.code ?? "";
  $("stopped").hidden = status !== "cancelled";
  $("meanwhile").hidden = isEnded(status);
  $("stages").hidden = status === "done";
  if (status !== "done") stages.show(STAGES.map((stage) => [stage, stageFacts(stage)]));
  announce(stateOf(shown));
}

function about() {
  const parts = [...factsOf(shown), ...(shown.status === "done" ? [creditOf(shown.provider)] : []), ago(shown.createdAt)];
  return parts.flatMap((part, at) => (at ? [" · ", part] : [part]));
}

function stageFacts(stage) {
  const { status, percent } = shown;
  const [step, now] = [stepOf(stage), stepOf(shown.stage)];
  const facts = { name: NAMES[stage], about: "", percent: null };
  if (step < now) return { ...facts, kind: "done", stage: "Done" };
  if (step > now) return { ...facts, kind: "waiting", stage: "" };
  return { ...facts, kind: kindOf(status), stage: status === "processing" ? running(percent) : stateOf(shown), about: happening(shown), percent: percent ?? null };
}

/** What the current stage reports. */
function happening({ status, problem, message }) {
  if (problem) return `${problem} It will be tried again.`;
  return (status === "processing" && message) || "";
}

const running = (percent) => (percent == null ? "Running" : `${Math.round(percent)} %`);
const NAMES = { extract_audio: "Prepare the audio", transcribe_start: "Start the transcription", transcribe_poll: "Transcribe", analyze: "Analyse" };

// Reading and listening

/** One after the other, so that no file is loaded and shown twice. */
function loadFiles() {
  loaded = loaded.then(load).catch((error) => {
    if (error.isFinal === false) setTimeout(loadFiles, AGAIN_MS); else complain(error);
  });
}

/** Loads the files that the call has by now, and shows them. */
async function load() {
  const kinds = shown.files.map(({ kind }) => kind);
  const missing = ["peaks", "transcript", "analysis"].filter((kind) => kinds.includes(kind) && !files[kind]);
  const found = await Promise.all(missing.map((kind) => call(`${address}/${kind}`)));
  missing.forEach((kind, at) => { files[kind] = found[at]; });
  $("downloads").hidden = !kinds.length;
  $("downloads").querySelector("ul").replaceChildren(...downloadsOf(address, shown.name, kinds));
  if (kinds.includes("audio") && files.peaks) showRecording();
  if (missing.includes("transcript")) showTranscript();
  if (missing.includes("analysis")) showAnalysis();
  if (missing.includes("peaks")) openMoment();
}

function showRecording() {
  const { duration, channels } = shown;
  const speakers = speakersOf({ channels, ...files });
  $("player").hidden = false;
  $("length").textContent = clock(duration);
  $("voices").replaceChildren(...speakers.map(({ speaker, name }) => element("span", name, { "data-voice": voiceOf(speaker) })));
  timeline.show({ duration, peaks: files.peaks, speakers, overlaps: files.analysis?.talk.overlaps ?? [] });
  player.load(`${address}/audio`, duration);
}

function showTranscript() {
  $("words").hidden = false;
  transcript.show(files.transcript);
  transcript.time = player.time;
  transcript.reveal(player.time);
}

function showAnalysis() {
  $("analysis").hidden = false;
  $("analysis").replaceChildren(...sectionsOf(files.analysis, (seconds) => player.seek(seconds)));
}

function moved(seconds) {
  timeline.time = seconds;
  transcript.time = seconds;
  const now = clock(seconds);
  if ($("now").textContent !== now) $("now").textContent = now;
}

/** Plays from a moment. */
function jump(seconds) {
  player.seek(seconds);
  transcript.reveal(seconds);
  player.play();
}

/** The moment in the address, without sound: nobody has clicked on this page yet. */
function openMoment() {
  const moment = momentIn(location.hash);
  if (moment === null) return;
  player.seek(moment);
  transcript.reveal(moment);
}

addEventListener("hashchange", openMoment);
addEventListener("click", (event) => {
  const moment = momentIn(event.target.closest?.("a[href^='#t=']")?.hash ?? "");
  if (moment === null || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  history.replaceState(null, "", event.target.closest("a").hash);
  jump(moment);
});

// What can be done with the call

$("cancel").onclick = (event) => busy(event.target, async () => {
  await post(`${address}/cancel`);
  stream.restart();
});
$("retry").onclick = (event) => busy(event.target, async () => {
  await post(`${address}/retry`);
  stream.restart();
});
$("remove").onclick = (event) => busy(event.target, async () => {
  $("sure-name").textContent = shown.name;
  if (!await confirmed($("sure"))) return;
  await call(address, { method: "DELETE" });
  location.assign("/");
});

async function start() {
  await openSession();
  open();
}

start();
