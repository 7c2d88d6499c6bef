// One page: ask, watch, read. What it shows it gets from the API, so a reload loses nothing.

import { busy, choices, copy } from "/components/actions.js";
import { showConnection } from "/components/connection.js";
import { Drop } from "/components/drop.js";
import { $, announce, element, hide } from "/components/elements.js";
import { counted } from "/components/format.js";
import { call, newKey, post } from "/components/http.js";
import { Rows } from "/components/rows.js";
import { follow } from "/components/stream.js";
import { Table } from "/components/table.js";

const AGAIN = 3000;
const STAGES = {
  queued: "Waiting", downloading: "Downloading", uploading_to_ai: "Asking the AI model",
  extracting: "Reading", caching: "Saving", done: "Done", failed: "Failed",
};

const drop = new Drop($("drop"), { changed: () => { key = null; } });
const rows = new Rows($("jobs"));
const table = new Table(document.querySelector("#schedule table"), columns(false));
let batch = null;
let jobs = new Map();
let stream = null;
let swims = [];
let day = "";
let asked = 0;
let hasResults = false;
// Of what the form says now: sent again because no answer came, it gives the same batch.
let key = null;

// Asking

function addresses() {
  const typed = $("urls").value.split(/\s+/).filter(Boolean);
  const picked = [...$("found").querySelectorAll("input:checked")].map((box) => box.value);
  return [...typed.filter((url) => url !== $("found").dataset.page), ...picked];
}

function refuse(error) {
  $("refused").textContent = error.message;
}

$("ask").addEventListener("input", () => { key = null; });
$("ask").onsubmit = (event) => {
  event.preventDefault();
  const form = new FormData();
  form.append("swimmer", $("swimmer").value);
  form.append("urls", JSON.stringify(addresses()));
  for (const file of drop.files) form.append("pdfs", file);
  $("refused").textContent = "";
  busy(event.submitter, async () => {
    key ??= newKey();
    const made = await call("/api/batch/extract", { method: "POST", body: form, headers: { "Idempotency-Key": key } });
    history.pushState(null, "", `/batches/${made.batchId}`);
    await open(made.batchId);
  }, refuse);
};

$("discover").onclick = (event) => busy(event.target, async () => {
  $("refused").textContent = "";
  const page = $("urls").value.trim().split(/\s+/)[0];
  if (!page) throw new Error("Enter the address of the meet’s page first.");
  const found = await post("/api/meets/discover", { url: page });
  $("found").dataset.page = page;
  $("found").replaceChildren(element("legend", "PDFs on that page"), ...(found.pdfs.length ? found.pdfs.map(pick) : [element("p", "That page has no links to PDFs.")]));
  $("found").hidden = false;
  key = null;
}, refuse);

function pick(pdf) {
  const box = element("input", [], { type: "checkbox", value: pdf.url });
  box.checked = pdf.likely;
  return element("label", [box, element("span", pdf.title)]);
}

addEventListener("popstate", () => location.reload());

// Watching

/** Resolves when the batch is shown. */
function open(id) {
  return new Promise((resolve) => {
    stream = follow(`/api/batch/${id}/stream`, {
      read: (signal) => call(`/api/batch/${id}`, { signal }),
      show: (state) => { take(state); resolve(); },
      last: (state) => state.batch.lastEventId,
      isOver: (state) => Boolean(state.batch.completedAt),
      on: HEED,
      changed: () => {
        show();
        if (hasResults) showResults();
      },
      state: (name, error) => {
        showConnection($("connection"), name);
        $("problem").textContent = batch ? "" : error?.message ?? "";
        if (name !== "failed") return;
        if (batch) leave(); else $("ask").hidden = false;
        resolve();
      },
    });
  });
}

function leave() {
  $("problem").textContent = "These sheets no longer exist: they were deleted, or are older than 30 days. Submit them again.";
  $("summary").textContent = "";
  for (const id of ["cancel", "retry", "notify"]) hide($(id), true, $("title"));
}

function take(state) {
  batch = state.batch;
  jobs = new Map(state.jobs.map((job) => [job.id, job]));
  rows.show(state.jobs.map((job) => [job.id, facts(job)]));
  show();
  hide($("ask"), true, $("title"));
  $("problem").textContent = "";
  showResults();
}

const HEED = {
  batch_started: () => { batch.status = "processing"; },
  job_progress: (data) => change(data, { stage: data.stage, message: data.message, error: null }),
  job_completed: (data) => {
    change(data, { ...data, stage: "done" });
    batch.completedJobs += 1;
    hasResults = true;
  },
  job_failed: (data) => {
    change(data, { stage: "failed", error: data.errorMessage, errorCode: data.errorCode, retriable: data.retriable });
    if (data.errorCode !== "CANCELLED") batch.failedJobs += 1;
  },
  batch_completed: ended,
  batch_cancelled: ended,
};

function change(data, what) {
  const job = Object.assign(jobs.get(data.jobId), what);
  rows.set(job.id, facts(job));
}

function ended(data) {
  Object.assign(batch, { status: data.status, completedJobs: data.completedJobs, failedJobs: data.failedJobs, completedAt: true });
  hasResults = true;
}

function show() {
  const isOver = Boolean(batch.completedAt);
  const over = [...jobs.values()].filter((job) => job.stage === "done" || job.stage === "failed").length;
  const hasFailed = [...jobs.values()].some((job) => job.stage === "failed");
  $("batch").hidden = false;
  document.title = `${batch.swimmerName} · HeatSync`;
  $("title").textContent = batch.swimmerName;
  $("summary").textContent = summary(isOver);
  announce(summary(isOver));
  Object.assign($("bar"), { max: batch.totalJobs, value: isOver ? batch.totalJobs : over });
  const isHidden = {
    cancel: isOver,
    notify: isOver || $("notify").dataset.mail !== "yes",
    retry: !isOver || !hasFailed || batch.status === "cancelled",
  };
  for (const [id, hidden] of Object.entries(isHidden)) hide($(id), hidden, $("summary"));
}

function summary(isOver) {
  if (batch.status === "cancelled") return `Cancelled: ${batch.completedJobs} of ${batch.totalJobs} sheets were read.`;
  const failed = batch.failedJobs ? `, ${batch.failedJobs} failed` : "";
  return `${batch.completedJobs} of ${batch.totalJobs} sheets read${failed}${isOver ? "." : " …"}`;
}

function facts(job) {
  const isCancelled = job.errorCode === "CANCELLED";
  const found = [job.meetName, job.eventCount != null && counted(job.eventCount, "swim"), job.cached && "read before"];
  return {
    name: job.filename,
    kind: isCancelled ? "cancelled" : { done: "done", failed: "failed", queued: "waiting" }[job.stage] ?? "active",
    stage: isCancelled ? "Cancelled" : STAGES[job.stage],
    about: job.error || (job.stage === "done" ? found.filter(Boolean).join(" · ") : job.message) || "",
  };
}

$("cancel").onclick = (event) => busy(event.target, () => post(`/api/batch/${batch.id}/cancel`));
$("retry").onclick = (event) => busy(event.target, async () => {
  await post(`/api/batch/${batch.id}/retry`);
  stream.restart();
});
$("share").onclick = () => copy(location.href, "The link is copied.");
$("notify").onsubmit = (event) => {
  event.preventDefault();
  busy(event.submitter, async () => {
    await post(`/api/batch/${batch.id}/notify`, { email: $("email").value });
    $("notified").textContent = "You will get an email.";
  });
};

// Reading

async function showResults() {
  const mine = ++asked;
  hasResults = false;
  let found;
  try {
    found = await call(`/api/batch/${batch.id}/results`);
  } catch (error) {
    if (!error.isFinal) setTimeout(() => { if (mine === asked) showResults(); }, AGAIN);
    return;
  }
  // An answer to an earlier question may come later.
  if (mine !== asked) return;
  swims = found.events;
  $("schedule").hidden = !swims.length;
  $("calendar").href = `/api/batch/${batch.id}/calendar.ics`;
  const untimed = swims.filter((swim) => !swim.heatStartTime || !swim.sessionDate).length;
  $("untimed").textContent = untimed ? `${counted(untimed, "swim")} without a time: not in the calendar.` : "";
  showWarnings(found.warnings);
  table.columns = columns(areSeveral());
  showDays();
  showSwims();
}

// Names are as printed, so one swimmer may have two: then they are shown too, which does no harm.
function areSeveral() {
  return new Set(swims.map((swim) => swim.swimmerName)).size > 1;
}

function showWarnings(warnings) {
  $("warnings").hidden = !warnings.length;
  if (areSeveral()) $("warnings").open = true;
  $("warnings").querySelector("summary").textContent = counted(warnings.length, "warning");
  $("warnings").querySelector("ul").replaceChildren(...warnings.map((text) => element("li", text)));
}

function showDays() {
  const days = [...new Set(swims.map((swim) => swim.sessionDate).filter(Boolean))];
  if (!days.includes(day)) day = "";
  const offered = days.length < 2 ? [] : [["", "All days"], ...days.map((each) => [each, named(each)])];
  choices($("days"), offered, (chosen) => { day = chosen; showSwims(); })(day);
}

function showSwims() {
  table.show(swims.filter((swim) => !day || swim.sessionDate === day));
}

function columns(withSwimmer) {
  return [
    { label: "Day", value: (swim) => swim.sessionDate && named(swim.sessionDate) },
    { label: "Time", class: "strong", value: (swim) => swim.heatStartTime },
    { label: "No.", value: (swim) => `#${swim.eventNumber}` },
    { label: "Event", class: "wide", value: (swim) => [swim.eventName, ...(swim.relay ? [" ", element("span", "relay", { class: "badge warn" })] : [])] },
    ...(withSwimmer ? [{ label: "Swimmer", value: (swim) => swim.swimmerName }] : []),
    { label: "Heat", short: "heat", value: (swim) => (swim.heatsInEvent ? `${swim.heatNumber} of ${swim.heatsInEvent}` : swim.heatNumber) },
    { label: "Lane", short: "lane", value: (swim) => swim.lane },
    { label: "Seed", short: "seed", value: (swim) => swim.seedTime },
    { label: "Team", short: "team", value: (swim) => swim.team },
  ];
}

$("print").onclick = () => print();

function named(date) {
  return new Date(`${date}T12:00`).toLocaleDateString(undefined, { weekday: "short", month: "short", day: "numeric" });
}

const path = location.pathname.match(/^\/batches\/([0-9a-f-]{36})$/);
if (path) open(path[1]); else $("ask").hidden = false;
