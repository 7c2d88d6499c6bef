// One page: ask, watch, read. What it shows it gets from the API, so a reload loses nothing.

const $ = (id) => document.getElementById(id);
const AGAIN = 3000;
const STAGES = {
  queued: "Waiting", downloading: "Downloading", uploading_to_ai: "Asking the AI model",
  extracting: "Reading", caching: "Saving", done: "Done", failed: "Failed",
};

const chosen = [];
let batch = null;
let jobs = new Map();
let stream = null;
let swims = [];
let day = null;
let asked = 0;
// Of what the form says now: sent again because no answer came, it gives the same batch.
let key = null;

const path = location.pathname.match(/^\/batches\/([0-9a-f-]{36})$/);
if (path) open(path[1]); else $("ask").hidden = false;

// Asking

function choose(files) {
  for (const file of files) {
    if (!chosen.some((it) => isSame(it, file))) chosen.push(file);
  }
  showFiles();
}

// Sheets of several sessions may well have one name and size; of those the server knows.
function isSame(file, other) {
  return ["name", "size", "lastModified"].every((fact) => file[fact] === other[fact]);
}

function showFiles() {
  key = null;
  $("files").replaceChildren(...chosen.map((file, at) => {
    const remove = element("button", "✕", { type: "button", class: "button quiet", "aria-label": `Remove ${file.name}` });
    remove.onclick = () => { chosen.splice(at, 1); showFiles(); $("pdfs").focus(); };
    return element("li", [element("span", `${file.name} (${size(file.size)})`), remove]);
  }));
}

$("pdfs").onchange = (event) => { choose(event.target.files); event.target.value = ""; };
for (const type of ["dragenter", "dragover"]) $("drop").addEventListener(type, (event) => hover(event, true));
for (const type of ["dragleave", "drop"]) $("drop").addEventListener(type, (event) => hover(event, false));
$("drop").addEventListener("drop", (event) => choose(event.dataTransfer.files));

function hover(event, over) {
  event.preventDefault();
  $("drop").classList.toggle("over", over);
}

function addresses() {
  const typed = $("urls").value.split(/\s+/).filter(Boolean);
  const picked = [...$("found").querySelectorAll("input:checked")].map((box) => box.value);
  return [...typed.filter((url) => url !== $("found").dataset.page), ...picked];
}

$("ask").addEventListener("input", () => { key = null; });
$("ask").onsubmit = async (event) => {
  event.preventDefault();
  const form = new FormData();
  form.append("swimmer", $("swimmer").value);
  form.append("urls", JSON.stringify(addresses()));
  for (const file of chosen) form.append("pdfs", file);
  await busy(event.submitter, $("refused"), async () => {
    key ??= unguessable();
    const made = await call("/api/batch/extract", { method: "POST", body: form, headers: { "Idempotency-Key": key } });
    history.pushState(null, "", `/batches/${made.batchId}`);
    await open(made.batchId);
  });
};

$("discover").onclick = (event) => busy(event.target, $("refused"), async () => {
  const page = $("urls").value.trim().split(/\s+/)[0];
  if (!page) throw new Error("Enter the address of the meet’s page first.");
  const found = await post("/api/meets/discover", { url: page });
  $("found").dataset.page = page;
  $("found").replaceChildren(...(found.pdfs.length ? found.pdfs.map(pick) : [element("p", "That page has no links to PDFs.")]));
  $("found").hidden = false;
  key = null;
});

function pick(pdf) {
  const box = element("input", [], { type: "checkbox", value: pdf.url });
  box.checked = pdf.likely;
  return element("label", [box, element("span", pdf.title)]);
}

addEventListener("popstate", () => location.reload());

// Watching

async function open(id) {
  try {
    take(await call(`/api/batch/${id}`));
  } catch (error) {
    $("problem").textContent = error.message;
    if (!error.isFinal) setTimeout(() => open(id), AGAIN); else if (batch) leave(); else $("ask").hidden = false;
    return;
  }
  hide($("ask"), true, $("title"));
  $("problem").textContent = "";
  if (!batch.completedAt) follow();
  await showResults();
}

function leave() {
  $("problem").textContent = "These sheets no longer exist: they were deleted, or are older than 30 days. Submit them again.";
  $("summary").textContent = "";
  for (const id of ["cancel", "retry", "notify"]) hide($(id), true, $("title"));
}

function take(state) {
  batch = state.batch;
  jobs = new Map(state.jobs.map((job) => [job.id, job]));
  $("jobs").replaceChildren(...state.jobs.map(() => element("li", [element("b"), element("span", "", { class: "stage" }), element("small")])));
  show();
}

function follow() {
  stream?.close();
  stream = new EventSource(`/api/batch/${batch.id}/stream?after=${batch.lastEventId}`);
  for (const [type, heed] of Object.entries(HEED)) {
    stream.addEventListener(type, (event) => {
      const data = JSON.parse(event.data);
      batch.lastEventId = data.eventId;
      heed(data);
      show();
    });
  }
  // It comes back by itself, but not from an answer such as 503.
  const mine = stream;
  stream.onerror = () => {
    if (mine === stream && mine.readyState === EventSource.CLOSED && !batch.completedAt) setTimeout(() => open(batch.id), AGAIN);
  };
}

const HEED = {
  batch_started: () => { batch.status = "processing"; },
  job_progress: (data) => change(data, { stage: data.stage, message: data.message, error: null }),
  job_completed: (data) => {
    change(data, { ...data, stage: "done" });
    batch.completedJobs += 1;
    showResults();
  },
  job_failed: (data) => {
    change(data, { stage: "failed", error: data.errorMessage, errorCode: data.errorCode, retriable: data.retriable });
    if (data.errorCode !== "CANCELLED") batch.failedJobs += 1;
  },
  batch_completed: ended,
  batch_cancelled: ended,
  // It may know of more than its number says: what comes after that is in it already.
  state_sync: () => open(batch.id),
};

function change(data, what) {
  Object.assign(jobs.get(data.jobId), what);
}

function ended(data) {
  Object.assign(batch, { status: data.status, completedJobs: data.completedJobs, failedJobs: data.failedJobs, completedAt: true });
  stream.close();
  showResults();
}

function show() {
  const isOver = Boolean(batch.completedAt);
  const over = [...jobs.values()].filter((job) => job.stage === "done" || job.stage === "failed").length;
  const hasFailed = [...jobs.values()].some((job) => job.stage === "failed");
  $("batch").hidden = false;
  document.title = `${batch.swimmerName} · HeatSync`;
  $("title").textContent = batch.swimmerName;
  $("summary").textContent = summary(isOver);
  Object.assign($("bar"), { max: batch.totalJobs, value: isOver ? batch.totalJobs : over });
  for (const job of jobs.values()) row(job);
  hide($("cancel"), isOver);
  hide($("notify"), isOver || $("notify").dataset.mail !== "yes");
  hide($("retry"), !isOver || !hasFailed || batch.status === "cancelled");
}

// Who works by keyboard goes on at what is there instead, not at the top of the page.
function hide(thing, isHidden, instead = $("summary")) {
  if (isHidden && thing.contains(document.activeElement)) instead.focus();
  thing.hidden = isHidden;
}

function summary(isOver) {
  if (batch.status === "cancelled") return `Cancelled: ${batch.completedJobs} of ${batch.totalJobs} sheets were read.`;
  const failed = batch.failedJobs ? `, ${batch.failedJobs} failed` : "";
  return `${batch.completedJobs} of ${batch.totalJobs} sheets read${failed}${isOver ? "." : " …"}`;
}

function row(job) {
  const kind = job.stage === "done" || job.stage === "failed" ? job.stage : job.stage === "queued" ? "waiting" : "active";
  const facts = [job.meetName, job.eventCount != null && counted(job.eventCount, "swim"), job.cached && "read before"];
  const about = job.error || (job.stage === "done" ? facts.filter(Boolean).join(" · ") : job.message) || "";
  const shown = $("jobs").children[job.sequence - 1];
  shown.className = kind;
  const texts = [job.filename, job.errorCode === "CANCELLED" ? "Cancelled" : STAGES[job.stage], about];
  texts.forEach((text, at) => { shown.children[at].textContent = text; });
}

$("cancel").onclick = (event) => busy(event.target, $("problem"), () => post(`/api/batch/${batch.id}/cancel`));
$("retry").onclick = (event) => busy(event.target, $("problem"), async () => {
  await post(`/api/batch/${batch.id}/retry`);
  await open(batch.id);
});
$("share").onclick = async (event) => {
  try {
    await navigator.clipboard.writeText(location.href);
    event.target.textContent = "Copied";
  } catch {
    prompt("Link to this page:", location.href);
  }
};
$("notify").onsubmit = async (event) => {
  event.preventDefault();
  await busy(event.submitter, $("problem"), async () => {
    await post(`/api/batch/${batch.id}/notify`, { email: $("email").value });
    $("notified").textContent = "You will get an email.";
  });
};

// Reading

async function showResults() {
  const mine = ++asked;
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
  $("who").hidden = !areSeveral();
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
  if (!days.includes(day)) day = null;
  const wanted = days.length < 2 ? [] : ["", ...days];
  if (wanted.join() !== [...$("days").children].map((button) => button.value).join()) {
    $("days").replaceChildren(...wanted.map((each) => {
      const button = element("button", each ? named(each) : "All days", { class: "button quiet", value: each });
      button.onclick = () => { day = each || null; showDays(); showSwims(); };
      return button;
    }));
  }
  for (const button of $("days").children) button.setAttribute("aria-pressed", button.value === (day ?? ""));
}

function showSwims() {
  const who = areSeveral();
  $("swims").replaceChildren(...swims.filter((swim) => !day || swim.sessionDate === day).map((swim) => {
    const heat = swim.heatsInEvent ? `${swim.heatNumber} of ${swim.heatsInEvent}` : swim.heatNumber;
    const relay = swim.relay ? [" ", element("span", "relay", { class: "relay" })] : [];
    return element("tr", [
      element("td", swim.sessionDate ? named(swim.sessionDate) : ""),
      element("td", swim.heatStartTime ?? "", { class: "time" }),
      element("td", `#${swim.eventNumber}`), element("td", [swim.eventName, ...relay], { class: "event" }),
      ...(who ? [element("td", swim.swimmerName ?? "", { class: "who" })] : []),
      ...[["heat", heat], ["lane", swim.lane], ["seed", swim.seedTime], ["team", swim.team]]
        .map(([label, value]) => element("td", value == null ? "" : String(value), { "data-label": label })),
    ]);
  }));
}

$("print").onclick = () => print();

function named(date) {
  return new Date(`${date}T12:00`).toLocaleDateString(undefined, { weekday: "short", month: "short", day: "numeric" });
}

// Tools

function element(tag, content = [], attributes = {}) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...[content].flat());
  return made;
}

// `randomUUID` is only for pages that came over TLS.
function unguessable() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function counted(count, thing) {
  return `${count} ${thing}${count === 1 ? "" : "s"}`;
}

function size(bytes) {
  return bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

async function call(url, options) {
  const silent = { ok: false, status: 503, json: async () => ({}) };
  const answer = await fetch(url, options).catch(() => silent);
  const body = await answer.json().catch(() => ({}));
  if (answer.ok) return body;
  const error = new Error(body.message ?? body.error ?? "The server does not respond. Try again.");
  error.isFinal = answer.status < 500 && answer.status !== 429;
  throw error;
}

function post(url, body) {
  return call(url, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body ?? {}) });
}

// Not `disabled`: that would take the focus away.
async function busy(button, problem, work) {
  if (button.ariaDisabled) return;
  button.ariaDisabled = "true";
  problem.textContent = "";
  try { await work(); } catch (error) { problem.textContent = error.message; } finally { button.ariaDisabled = null; }
}
