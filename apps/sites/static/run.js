// The page of one run: watch its phases, then read its report.

import { busy, confirmed } from "/components/actions.js";
import { showConnection } from "/components/connection.js";
import { $, announce, element, hide } from "/components/elements.js";
import { ago } from "/components/format.js";
import { call, post } from "/components/http.js";
import { closable } from "/components/menu.js";
import { Rows } from "/components/rows.js";
import { follow } from "/components/stream.js";
import { complain } from "/components/toast.js";
import { download } from "./download.js";
import { ENDED, isEnded, kindOf, meaningOf, nameOf, percentIn, PHASES, stateOf, stepOf } from "./phases.js";
import { showReport } from "./report.js";
import { showSchedule } from "./schedule.js";
import { openSession } from "./sessions.js";

const id = location.pathname.split("/").at(-1);
const address = `/api/runs/${id}`;
const AGAIN_MS = 3_000;

const phases = new Rows($("phases"));
let shown = null;
let stream = null;
let report = null;
let providers = [];

closable($("downloads"));

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
  $("run").hidden = false;
  show();
  loadReport();
}

const end = ({ status, error = null }) => {
  Object.assign(shown, { status, error, currentStep: null, problem: null });
  refresh();
};
const HEED = {
  phase: ({ status }) => Object.assign(shown, { status, phase: status, error: null, problem: null, currentStep: null }),
  progress: ({ status, currentStep, progress }) => Object.assign(shown, { status, phase: status, currentStep, progress, problem: null }),
  retrying: ({ status, message }) => Object.assign(shown, { status, phase: status, problem: message }),
  completed: end,
  failed: end,
  cancelled: end,
  reload: () => stream.restart(),
};

/** Reads what events do not have: the result. */
async function refresh() {
  try {
    Object.assign(shown, await call(address));
    show();
    loadReport();
  } catch (error) {
    if (!error.isFinal) setTimeout(refresh, AGAIN_MS);
  }
}

function show() {
  const { status, error, site, result } = shown;
  const name = result?.businessName ?? site;
  document.title = `${isEnded(status) ? "" : `${stateOf(status)} · `}${name} · Sites`;
  $("title").textContent = name;
  showAbout();
  hide($("cancel"), isEnded(status), $("title"));
  for (const each of ["repeat", "downloads"]) hide($(each), status !== "completed", $("title"));
  hide($("remove"), !isEnded(status), $("title"));
  hide($("failure"), status !== "failed", $("title"));
  $("failure-text").textContent = error?.message ?? "";
  $("failure-code").textContent = error?.code ?? "";
  $("stopped").hidden = status !== "cancelled";
  $("meanwhile").hidden = isEnded(status);
  $("phases").hidden = status === "completed";
  if (status !== "completed") phases.show(PHASES.map((phase) => [phase, phaseFacts(phase)]));
  announce(stateOf(status));
}

function showAbout() {
  const { url, createdAt, finishedAt, repeats } = shown;
  const parts = [
    element("a", url.replace(/^https?:\/\//, "").replace(/\/$/, ""), { href: url, rel: "noreferrer nofollow" }),
    ago(finishedAt ?? createdAt),
    ...(repeats ? [element("a", "repeats an earlier run", { href: `/runs/${repeats}` })] : []),
  ];
  // Only addresses that a browser opens as a page are links.
  if (!/^https?:\/\//.test(url)) parts[0] = url;
  $("about").replaceChildren(...parts.flatMap((part, at) => (at ? [" · ", part] : [part])));
}

function phaseFacts(phase) {
  const { status, progress, problem, currentStep } = shown;
  const [step, now] = [stepOf(phase), stepOf(shown.phase)];
  const facts = { name: nameOf(phase), about: meaningOf(phase), percent: null };
  if (step < now) return { ...facts, kind: "done", stage: "Done" };
  if (step > now) return { ...facts, kind: "waiting", stage: "" };
  const percent = percentIn(phase, progress);
  const about = problem ? `${problem} It will be tried again.` : isEnded(status) ? facts.about : currentStep ?? facts.about;
  return { ...facts, kind: kindOf(status), stage: isEnded(status) || status === "not-started" ? stateOf(status) : running(percent), about, percent };
}

const running = (percent) => (percent == null ? "Running" : `${Math.round(percent)} %`);

// Reading

async function loadReport() {
  if (shown.status !== "completed") return clearReport();
  if (report) return;
  try {
    const [found, { schedules }] = await Promise.all([call(`${address}/report`), call("/api/schedules")]);
    report = found;
    $("json").href = `${address}/report`;
    $("json").download = `report-${shown.site.replaceAll(":", "-")}.json`;
    showSchedule(address, schedules.find(({ site }) => site === shown.site) ?? null);
    showReport({ report, run: shown, address, providers });
    if (location.hash) document.querySelector(`[id="${CSS.escape(location.hash.slice(1))}"]`)?.scrollIntoView();
  } catch (error) {
    if (error.isFinal === false) setTimeout(loadReport, AGAIN_MS); else complain(error);
  }
}

/** A run that is retried has no report any more. */
function clearReport() {
  report = null;
  $("schedule").hidden = $("contents").hidden = true;
  $("report").replaceChildren();
}

// What can be done with the run

const restarting = (path) => (event) => busy(event.currentTarget, async () => {
  await post(`${address}/${path}`);
  stream.restart();
});

$("cancel").onclick = restarting("cancel");
$("retry").onclick = restarting("retry");
$("repeat").onclick = (event) => busy(event.currentTarget, async () => {
  const { id: repeat } = await post(`${address}/repeat`);
  location.assign(`/runs/${repeat}`);
});
$("pdf").onclick = () => busy($("downloads").querySelector("summary"), () => download(`${address}/report.pdf`, `report-${shown.site.replaceAll(":", "-")}.pdf`));
$("print").onclick = () => window.print();
$("remove").onclick = (event) => busy(event.currentTarget, async () => {
  $("sure-name").textContent = shown.site;
  if (!await confirmed($("sure"))) return;
  await call(address, { method: "DELETE" });
  location.assign("/");
});

// On paper, everything that is folded is open.
addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll("#report details:not([open])")) Object.assign(each, { open: true }).dataset.folded = "";
});
addEventListener("afterprint", () => {
  for (const each of document.querySelectorAll("#report details[data-folded]")) {
    each.open = false;
    delete each.dataset.folded;
  }
});

async function start() {
  await openSession();
  try {
    ({ providers } = await call("/api/providers"));
  } catch (error) {
    $("problem").textContent = error.message;
    return setTimeout(start, AGAIN_MS);
  }
  open();
}

start();
