// The page with all documents and exports: write, select, export, download.

import { busy, confirmed } from "/components/actions.js";
import { showConnection } from "/components/connection.js";
import { Drop } from "/components/drop.js";
import { $, announce, hide } from "/components/elements.js";
import { counted } from "/components/format.js";
import { complain, toast } from "/components/toast.js";
import { get, post, remove } from "./api.js";
import { readDesigns } from "./designs.js";
import { Documents } from "./documents.js";
import { save } from "./downloads.js";
import { exportDocuments, MOST } from "./exporting.js";
import { Exports } from "./exports.js";
import { importFiles } from "./imports.js";
import { openSession } from "./sessions.js";

const NARROW = matchMedia("(max-width: 64rem)");
const MINUTE_MS = 60_000;

// What can be done with documents

const documents = new Documents($("grid"), {
  export: (document) => exported([document]),
  copy: async ({ id, name }) => {
    const { resume, document } = await get(`/documents/${id}`);
    await post("/documents", document ?? resume);
    await documents.read();
    toast(`${name} is duplicated.`, { kind: "good" });
  },
  save: async ({ id, name }) => {
    const { document } = await get(`/documents/${id}`);
    save(JSON.stringify(document, null, 2), `${name}.json`, "application/json");
  },
  remove: (document) => deleted([document]),
}, showDocuments);

async function exported(chosen, options = {}) {
  const answer = await exportDocuments(chosen, options);
  if (!answer) return;
  documents.clear();
  if (answer.reused) toast(answer.status === "completed" ? "This export is already there. It is kept for 7 more days." : "This export is already in progress.", { kind: "good" });
  if (NARROW.matches) location.hash = "#exports";
  await exports.showNew(answer.jobIds);
}

/** The document of an export, which may be older than those in the grid. */
async function documentOf(id) {
  try {
    return await get(`/documents/${id}`);
  } catch (error) {
    throw error.status === 404 ? new Error("The document of this export was deleted.") : error;
  }
}

async function deleted(chosen) {
  const what = chosen.length === 1 ? chosen[0].name : counted(chosen.length, "document");
  if (!await sure(`Delete ${what}?`, "Waiting exports are cancelled. Finished exports stay until they expire. This cannot be undone.")) return;
  for (const { id } of chosen) await remove(`/documents/${id}`).catch((error) => { if (error.status !== 404) throw error; });
  documents.drop(chosen.map(({ id }) => id));
  $("main").focus({ preventScroll: true });
  toast(`${what} ${chosen.length === 1 ? "is" : "are"} deleted.`, { kind: "good" });
  await documents.read();
}

function sure(title, text) {
  $("sure-title").textContent = title;
  $("sure-text").textContent = text;
  return confirmed($("sure"));
}

// The grid and the selection

function showDocuments() {
  const isEmpty = !documents.size;
  const { selected } = documents;
  $("loading").hidden = true;
  $("first").hidden = !isEmpty;
  $("documents-hint").hidden = isEmpty;
  hide($("more-documents"), !documents.hasMore, $("main"));
  hide($("selection"), !selected.length, $("main"));
  if (selected.length) announce(`${selected.length} selected`);
  $("selected").textContent = `${selected.length} selected`;
  const isTooMany = selected.length > MOST;
  $("too-many").textContent = isTooMany ? `${MOST} at most in one export` : "";
  $("export-selected").ariaDisabled = isTooMany ? "true" : null;
  $("export-selected").textContent = selected.length > 1 ? `Export ${selected.length}` : "Export";
  $("export-selected").ariaLabel = selected.length > 1 ? `Export ${counted(selected.length, "document")}` : null;
}

$("clear").onclick = () => documents.clear();
$("export-selected").onclick = ({ target }) => { if (!target.ariaDisabled) exported(documents.selected).catch(complain); };
$("delete-selected").onclick = ({ target }) => busy(target, () => deleted(documents.selected));
$("more-documents").onclick = ({ target }) => busy(target, () => documents.readMore());
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !event.defaultPrevented && !document.querySelector("dialog[open], .menu[open], .toast:focus-within")) documents.clear();
});

$("import").onclick = () => $("files").click();

const drop = new Drop($("documents"), {
  changed: async (files) => {
    if (!files.length) return;
    drop.clear();
    const made = await importFiles(files);
    if (!made.length) return;
    await documents.read().catch(complain);
    documents.focus(made[0].id);
  },
});

// The exports

const exports = new Exports({
  remove: async (item) => {
    if (!await sure(`Delete ${item.fileName}?`, "The file is deleted, and its space is free at once. This cannot be undone.")) return;
    await remove(`/export/history/${item.id}`);
    $("history-title").focus();
    exports.refresh();
    toast(`${item.fileName} is deleted.`, { kind: "good" });
  },
  again: async ({ documentId, templateSlug }) => exported([await documentOf(documentId)], { template: templateSlug }),
}, {
  changed: (running) => {
    $("running").hidden = !running;
    $("running").textContent = String(running);
    document.title = running ? `(${running}) Resumes` : "Resumes";
  },
  state: (name, error) => {
    showConnection($("connection"), name);
    if (name === "failed" && error.status === 401) start();
    else $("problem").textContent = name === "failed" ? error.message : "";
  },
});

// On a narrow screen the page shows one of its two parts.

function showView() {
  const view = location.hash === "#exports" ? "exports" : "documents";
  $("content").dataset.view = view;
  for (const link of $("views").children) link.ariaCurrent = link.hash === `#${view}` ? "page" : null;
}

addEventListener("hashchange", showView);
document.addEventListener("visibilitychange", () => { if (!document.hidden && documents.size) documents.read().catch(() => {}); });
setInterval(() => documents.tick(), MINUTE_MS);
showView();

async function start() {
  await openSession();
  exports.open();
  try {
    await readDesigns();
    await documents.read();
  } catch (error) {
    $("problem").textContent = error.message;
    setTimeout(start, 3_000);
  }
}

start();
