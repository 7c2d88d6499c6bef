// The page with all calls: upload, watch, find.

import { confirmed } from "/components/actions.js";
import { showConnection } from "/components/connection.js";
import { Drop } from "/components/drop.js";
import { $, announce, hide } from "/components/elements.js";
import { counted } from "/components/format.js";
import { call, post } from "/components/http.js";
import { Rows } from "/components/rows.js";
import { follow } from "/components/stream.js";
import { toast } from "/components/toast.js";
import { filtersIn, Listing } from "./listing.js";
import { chosenOptions, showOptions } from "./options.js";
import { Row } from "./row.js";
import { openSession } from "./sessions.js";
import { isEnded, STAGES } from "./stages.js";
import { Uploads } from "./uploads.js";

const RESTART_MS = 1_000;
const MINUTE_MS = 60_000;

const rows = new Rows($("calls"));
const drop = new Drop($("drop"), { changed: showChosen });
const uploads = new Uploads($("uploads"), uploaded);
let listing = new Listing(filtersIn(location.search));
let views = new Map();
let stream = null;
let restart = null;
// Calls that the list does not have, each with its state: the list is read once for each.
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
  views = new Map(state.calls.map(({ id, ...rest }) => [id, views.get(id) ?? new Row({ id, ...rest }, ACTS)]));
  rows.show(state.calls.map((each) => [each.id, factsOf(each)]));
  hide($("more"), !state.hasMore, $("main"));
  summarise();
}

const factsOf = (each) => views.get(each.id).facts(each, listing.filters.q);

/** Applies an event to the call that it is about. */
function change(id, facts) {
  const known = listing.calls.get(id);
  if (!known) return miss(id, facts.status);
  rows.set(id, factsOf(Object.assign(known, facts)));
}

/** A call that was uploaded elsewhere, or one that matches the filters now. */
function miss(id, status) {
  if (!status || missed.get(id) === status) return;
  missed.set(id, status);
  restart ??= setTimeout(() => {
    restart = null;
    if ([...missed.keys()].some((each) => !listing.calls.has(each))) stream.restart();
  }, RESTART_MS);
}

/** Events do not have the length and the channels, which are known after the first stage. */
async function learn(id) {
  const known = listing.calls.get(id);
  if (!known || known.duration != null || known.stage === STAGES[0]) return;
  const { duration, channels } = await call(`/api/calls/${id}`);
  change(id, { duration, channels });
}

const end = ({ id, status, error = null }) => change(id, { status, error, percent: null, problem: null });
const HEED = {
  stage: ({ id, status, stage }) => {
    const isSame = listing.calls.get(id)?.stage === stage;
    change(id, { status, stage, error: null, problem: null, ...(!isSame && { percent: null }) });
    // If this fails, the next event or the next page has them.
    learn(id).catch(() => {});
  },
  progress: ({ id, stage, percent }) => change(id, { stage, percent }),
  retrying: ({ id, message }) => change(id, { status: "queued", percent: null, problem: message }),
  done: end,
  failed: end,
  cancelled: end,
  reload: () => stream.restart(),
};

function summarise() {
  const calls = [...listing.calls.values()];
  const running = calls.filter(({ status }) => !isEnded(status)).length;
  const isNew = !calls.length && !listing.isFiltered;
  $("first").hidden = !isNew;
  $("filters").hidden = isNew;
  $("none").hidden = calls.length > 0 || isNew;
  $("found").textContent = listing.filters.q && calls.length ? `“${listing.filters.q}” was said in ${counted(calls.length, "call")}${$("more").hidden ? "" : " or more"}.` : "";
  document.title = running ? `(${running}) Calls` : "Calls";
  if (calls.length && !listing.isFiltered) announce(running ? `${counted(running, "call")} in progress` : "No call is in progress");
}

$("more").onclick = () => {
  listing.wantMore();
  stream.restart();
};
setInterval(() => { for (const each of listing.calls.values()) rows.set(each.id, factsOf(each)); }, MINUTE_MS);

// What can be done with a call

const ACTS = {
  cancel: async (id) => change(id, await post(`/api/calls/${id}/cancel`)),
  retry: async (id) => change(id, { problem: null, ...await post(`/api/calls/${id}/retry`) }),
  remove: async (id) => {
    const { name } = listing.calls.get(id);
    $("sure-name").textContent = name;
    if (!await confirmed($("sure"))) return;
    await call(`/api/calls/${id}`, { method: "DELETE" });
    listing.calls.delete(id);
    views.delete(id);
    rows.show([...listing.calls.values()].map((each) => [each.id, factsOf(each)]));
    $("main").focus({ preventScroll: true });
    summarise();
    toast(`${name} is deleted.`, { kind: "good" });
  },
};

// Filters

$("filters").onsubmit = (event) => {
  event.preventDefault();
  const filters = filtersIn(new URLSearchParams(new FormData(event.target)));
  const query = new URLSearchParams(filters).toString();
  history.pushState(null, "", query ? `/?${query}` : "/");
  filter();
};
$("status").onchange = () => $("filters").requestSubmit();
addEventListener("popstate", filter);

/** Not a new page, because that would stop the uploads. */
function filter() {
  listing = new Listing(filtersIn(location.search));
  showFilters();
  open();
}

function showAll() {
  history.pushState(null, "", "/");
  filter();
}

$("all").onclick = (event) => {
  event.preventDefault();
  showAll();
};

function showFilters() {
  for (const name of ["q", "status"]) $(name).value = listing.filters[name] ?? "";
}

// Uploads

function showChosen(files) {
  $("options").hidden = !files.length;
  $("refused").textContent = "";
  $("send").textContent = files.length > 1 ? `Upload ${counted(files.length, "recording")}` : "Upload";
}

$("upload").onsubmit = (event) => {
  event.preventDefault();
  try {
    const fields = chosenOptions(drop.files);
    for (const file of drop.files) uploads.add(file, fields);
    $("recordings").focus();
    $("upload").reset();
    showOptions(session);
    drop.clear();
  } catch (error) {
    $("refused").textContent = error.message;
  }
};

function uploaded(calls) {
  if (listing.isFiltered) toast(`${calls[0].name} is uploaded.`, { kind: "good", action: { label: "Show all calls", run: showAll } });
  calls.forEach(() => listing.wantOneMore());
  stream?.restart();
}

let session = null;

async function start() {
  session = await openSession();
  showOptions(session);
  showFilters();
  open();
}

start();
