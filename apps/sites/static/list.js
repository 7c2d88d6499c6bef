// The page with all runs: begin, watch, find.

import { confirmed } from "/components/actions.js";
import { showConnection } from "/components/connection.js";
import { $, announce, element, hide } from "/components/elements.js";
import { counted } from "/components/format.js";
import { call, post } from "/components/http.js";
import { Rows } from "/components/rows.js";
import { follow } from "/components/stream.js";
import { toast } from "/components/toast.js";
import { filtersIn, Listing } from "./listing.js";
import { isEnded, siteOf } from "./phases.js";
import { Row } from "./row.js";
import { openSession } from "./sessions.js";
import { openForm, showModels } from "./submit.js";

const RESTART_MS = 1_000;
const AGAIN_MS = 3_000;
const MINUTE_MS = 60_000;

const rows = new Rows($("runs"));
let listing = new Listing(filtersIn(location.search));
let views = new Map();
let stream = null;
let restart = null;
// Runs that the list does not have, each with its state: the list is read once for each.
let missed = new Map();

// The list

function open() {
  stream?.close();
  missed = new Map();
  stream = follow("/api/stream", {
    read: (signal) => listing.read(signal),
    show: take,
    last: ({ lastEventId }) => lastEventId,
    on: HEED,
    ends: [],
    changed: summarise,
    state: (name, error) => {
      showConnection($("connection"), name);
      if (name !== "failed") return;
      if (error.status === 401) start(); else $("problem").textContent = error.message;
    },
  });
}

function take(state) {
  listing.take(state);
  $("loading").hidden = true;
  $("problem").textContent = "";
  views = new Map(state.runs.map((run) => [run.id, views.get(run.id) ?? new Row(run, ACTS)]));
  draw();
  hide($("more"), !state.hasMore, $("main"));
  $("sites").replaceChildren(...[...new Set(state.runs.map(({ site }) => site))].sort().map((site) => element("option", [], { value: site })));
  summarise();
}

const factsOf = (run) => views.get(run.id).facts(run);
const draw = () => rows.show([...listing.runs.values()].map((run) => [run.id, factsOf(run)]));

/** Applies an event to the run that it is about. */
function change(id, facts) {
  const known = listing.runs.get(id);
  if (!known) return miss(id, facts.status);
  rows.set(id, factsOf(Object.assign(known, facts)));
}

/** A run that was begun elsewhere, or one that matches the filters now. */
function miss(id, status) {
  if (!status || missed.get(id) === status) return;
  missed.set(id, status);
  restart ??= setTimeout(() => {
    restart = null;
    if ([...missed.keys()].some((each) => !listing.runs.has(each))) stream.restart();
  }, RESTART_MS);
}

/** Events do not have the score and the name of the business. */
async function learn(id) {
  if (!listing.runs.has(id)) return;
  try {
    const { otherRuns, usage, ...run } = await call(`/api/runs/${id}`);
    change(id, run);
    summarise();
  } catch (error) {
    if (!error.isFinal) setTimeout(() => learn(id), AGAIN_MS);
  }
}

const end = ({ id, status, error = null }) => {
  change(id, { status, error, problem: null, currentStep: null });
  learn(id);
};
const HEED = {
  phase: ({ id, status }) => change(id, { status, phase: status, error: null, problem: null }),
  progress: ({ id, status, currentStep, progress }) => change(id, { status, phase: status, currentStep, progress, problem: null }),
  retrying: ({ id, status, message }) => change(id, { status, phase: status, problem: message }),
  completed: end,
  failed: end,
  cancelled: end,
  reload: () => stream.restart(),
};

function summarise() {
  const runs = [...listing.runs.values()];
  const running = runs.filter(({ status }) => !isEnded(status)).length;
  const isNew = !runs.length && !listing.isFiltered;
  $("first").hidden = !isNew;
  $("head").hidden = isNew;
  $("none").hidden = runs.length > 0 || isNew;
  document.title = running ? `(${running}) Sites` : "Sites";
  if (runs.length && !listing.isFiltered) announce(running ? `${counted(running, "run")} in progress` : "No run is in progress");
}

$("more").onclick = () => {
  listing.wantMore();
  stream.restart();
};
setInterval(() => { for (const run of listing.runs.values()) rows.set(run.id, factsOf(run)); }, MINUTE_MS);

// What can be done with a run

const ACTS = {
  cancel: async (id) => change(id, await post(`/api/runs/${id}/cancel`)),
  retry: async (id) => change(id, { problem: null, ...await post(`/api/runs/${id}/retry`) }),
  remove: async (id) => {
    const { site } = listing.runs.get(id);
    $("sure-name").textContent = site;
    if (!await confirmed($("sure"))) return;
    await call(`/api/runs/${id}`, { method: "DELETE" });
    listing.runs.delete(id);
    views.delete(id);
    draw();
    $("main").focus({ preventScroll: true });
    summarise();
    toast(`The run of ${site} is deleted.`, { kind: "good" });
  },
};

// Filters

$("filters").onsubmit = (event) => {
  event.preventDefault();
  if ($("site").value) $("site").value = siteOf($("site").value);
  const query = new URLSearchParams(filtersIn(new URLSearchParams(new FormData(event.target)))).toString();
  go(query ? `/?${query}` : "/");
};
$("status").onchange = () => $("filters").requestSubmit();
$("all").onclick = (event) => {
  event.preventDefault();
  go("/");
};
addEventListener("popstate", filter);

function go(address) {
  history.pushState(null, "", address);
  filter();
}

function filter() {
  listing = new Listing(filtersIn(location.search));
  for (const name of ["site", "status"]) $(name).value = listing.filters[name] ?? "";
  open();
}

// New runs

openForm((runs) => {
  if (runs.length === 1) return location.assign(`/runs/${runs[0].id}`);
  toast(`${counted(runs.length, "run")} begun.`, { kind: "good" });
  if (listing.isFiltered) return go("/");
  listing.wantMore(runs.length);
  stream?.restart();
});

async function start() {
  await openSession();
  filter();
  try {
    showModels(await call("/api/providers"));
  } catch (error) {
    $("problem").textContent = error.message;
    setTimeout(start, AGAIN_MS);
  }
}

start();
