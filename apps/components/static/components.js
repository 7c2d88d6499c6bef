// Shows every component. The live rows follow the engine's own events.

import { busy, choices, confirmed } from "/components/actions.js";
import { showConnection } from "/components/connection.js";
import { Drop } from "/components/drop.js";
import { $, announce, element, hide } from "/components/elements.js";
import { ago, bytes, counted, duration } from "/components/format.js";
import { call, post } from "/components/http.js";
import { closable } from "/components/menu.js";
import { Rows } from "/components/rows.js";
import { follow } from "/components/stream.js";
import { Table } from "/components/table.js";
import { toast } from "/components/toast.js";

const KINDS = { ready: "waiting", scheduled: "waiting", running: "active", completed: "done", failed: "failed", cancelled: "cancelled" };
const STAGES = { "components.fetch": "Fetching", "components.convert": "Converting", "components.store": "Storing" };
const ENDS = { completed: "Done", failed: "Failed", cancelled: "Cancelled" };

// Live rows

const rows = new Rows($("jobs"));
let batch = null;
let steps = [];
let isOver = false;
let stream = null;

function open(id) {
  batch = `/api/batches/${id}`;
  history.replaceState(null, "", `#${id}`);
  stream?.close();
  stream = follow(`${batch}/stream`, {
    read: (signal) => call(batch, { signal }),
    show: take,
    last: (state) => state.last_event,
    isOver: (state) => state.is_over,
    on: HEED,
    changed: show,
    state: (name, error) => {
      showConnection($("connection"), name);
      if (name === "failed") toast(error.message, { kind: "bad" });
    },
  });
}

function take(state) {
  steps = state.stages;
  isOver = state.is_over;
  rows.show(state.jobs.map((job) => [job.id, {
    name: job.name,
    kind: KINDS[job.state],
    about: job.error ?? job.result ?? job.progress?.message,
    percent: job.progress?.percent ?? null,
    ...at(job.task, ENDS[job.state]),
  }]));
  show();
}

function at(task, stage = STAGES[task]) {
  return { stage, step: steps.indexOf(task) + 1, steps: steps.length };
}

const wait = ({ job_id, data }) => rows.set(job_id, { kind: "waiting", about: "Waits for its turn", percent: null, ...at(data.task) });
const end = (state) => ({ job_id, data }) => rows.set(job_id, { kind: KINDS[state], stage: ENDS[state], about: data.message ?? "" });
const over = () => { isOver = true; };
const HEED = {
  job_started: ({ job_id, data }) => rows.set(job_id, { kind: "active", about: "", percent: null, ...at(data.task) }),
  job_progress: ({ job_id, data }) => rows.set(job_id, { about: data.message, percent: data.percent }),
  job_retrying: ({ job_id, data }) => rows.set(job_id, {
    kind: "waiting", stage: "Waiting", about: data.manual ? "" : `${data.message} Trying again in ${duration(data.delay)}.`,
  }),
  job_stage: wait,
  job_snoozed: wait,
  job_released: wait,
  job_completed: end("completed"),
  job_failed: end("failed"),
  job_cancelled: end("cancelled"),
  batch_completed: over,
  batch_cancelled: over,
};

function show() {
  const kinds = rows.all.map((facts) => facts.kind);
  const count = (kind) => kinds.filter((each) => each === kind).length;
  const ended = count("done") + count("failed") + count("cancelled");
  const failed = count("failed") ? `, ${count("failed")} failed` : "";
  $("summary").textContent = `${count("done")} of ${counted(kinds.length, "document")} converted${failed}${isOver ? "." : " …"}`;
  announce($("summary").textContent);
  Object.assign($("bar"), { max: kinds.length, value: ended, hidden: false });
  $("none").hidden = true;
  hide($("cancel"), isOver, $("summary"));
  hide($("retry"), !isOver || !count("failed"), $("summary"));
}

$("run").onclick = (event) => busy(event.target, async () => open((await post("/api/batches")).id));
$("cancel").onclick = (event) => busy(event.target, () => post(`${batch}/cancel`));
$("retry").onclick = (event) => busy(event.target, async () => {
  await post(`${batch}/retry`);
  stream.restart();
});
const known = location.hash.match(/^#([0-9a-f-]{36})$/);
if (known) open(known[1]);

// Rows and connections in every state

const player = element("audio", [], { controls: "", preload: "none", src: "/tone.wav", "aria-label": "Recording of call-17.ogg" });
const link = element("a", "Download", { href: "/tone.wav", class: "button quiet", download: "" });
new Rows($("every")).show([
  { name: "waiting.pdf", kind: "waiting", stage: "Waiting", about: "Third in the queue" },
  { name: "stage-2-of-3.pdf", kind: "active", stage: "Converting", about: "Page 5 of 8", percent: 62, step: 2, steps: 3 },
  { name: "unknown-length.pdf", kind: "active", stage: "Transcribing", about: "The provider works on it", step: 2, steps: 4 },
  { name: "percent.pdf", kind: "active", stage: "Rendering", about: "75 %", percent: 75 },
  { name: "done.pdf", kind: "done", stage: "Done", about: `8 pages · ${bytes(1_234_567)}`, content: link },
  { name: "call-17.ogg", kind: "done", stage: "Done", about: `Recording, ${duration(245)}`, content: player },
  { name: "failed.pdf", kind: "failed", stage: "Failed", about: "Page 3 is damaged. Scan it again and retry." },
  { name: "cancelled.pdf", kind: "cancelled", stage: "Cancelled" },
  { name: "a-file-name-without-any-space-that-is-much-longer-than-the-width-of-a-phone-2026-03-07.pdf", kind: "active", stage: "Converting", about: "A sentence about it, which is long enough to need a second line on most screens, because a server has sent it.", percent: 10 },
].map((facts) => [facts.name, facts]));
$("connections").append(...["connecting", "live", "reconnecting", "polling", "paused", "failed"].map((name) => {
  const place = element("span", [], { class: "connection" });
  showConnection(place, name);
  return place;
}));

// A table with filters

const TASKS = ["calls.transcribe", "resumes.export", "sites.analyse"];
const STATES = ["completed", "completed", "completed", "running", "failed"];
const BADGES = { completed: "good", running: "active", failed: "bad" };
const made = Array.from({ length: 60 }, (_, at) => ({
  name: `Batch ${at + 1} of ${["Ann Lee", "club-42", "Platinum Motors"][at % 3]}`,
  task: TASKS[at % 3], state: STATES[at % 5], jobs: (at * 37) % 900 + 1, seconds: (at * 13.7) % 400, started: new Date(Date.now() - at * 4_000_000).toISOString(),
}));
const table = new Table(document.querySelector("#tables table"), [
  { label: "Batch", class: "wide strong", value: (it) => it.name, sort: (it) => it.name },
  { label: "State", value: (it) => element("span", it.state, { class: `badge ${BADGES[it.state]}` }), sort: (it) => it.state },
  { label: "Task", value: (it) => it.task, sort: (it) => it.task },
  { label: "Jobs", short: "jobs", class: "number", value: (it) => it.jobs.toLocaleString(), sort: (it) => it.jobs },
  { label: "Took", short: "took", class: "number", value: (it) => duration(it.seconds), sort: (it) => it.seconds },
  { label: "Started", value: (it) => ago(it.started), sort: (it) => it.started },
]);
const asked = new URLSearchParams(location.search);
$("text").value = asked.get("text") ?? "";
$("state").value = asked.get("state") ?? "";
const found = made.filter((it) => (!$("state").value || it.state === $("state").value) && `${it.name} ${it.task}`.toLowerCase().includes($("text").value.toLowerCase()));
table.show(found);
$("shown").textContent = counted(found.length, "batch", "batches");
$("nothing").hidden = found.length > 0;
document.querySelector("#tables .table").hidden = !found.length;

// Buttons, forms, messages

new Drop($("drop"));
closable($("menu"));
$("work").onclick = (event) => busy(event.target, () => new Promise((resolve) => setTimeout(resolve, 1000)));
$("delete").onclick = async () => { if (await confirmed($("sure"))) toast("3 documents are deleted.", { kind: "good" }); };
$("sign-in").onsubmit = (event) => {
  event.preventDefault();
  $("key-problem").textContent = "This key is not valid: it was revoked, has expired or does not exist.";
  $("key").ariaInvalid = "true";
};
$("toast-good").onclick = () => toast("The link is copied.", { kind: "good" });
$("toast-bad").onclick = () => toast("The server does not respond. Try again.", { kind: "bad" });
$("toast-action").onclick = () => toast("One export is deleted.", { action: { label: "Undo", run: () => toast("It is back.", { kind: "good" }) } });
$("print").onclick = () => print();
choices($("themes"), [["", "System"], ["light", "Light"], ["dark", "Dark"]], (theme) => { document.documentElement.dataset.theme = theme; })("");
