// The page of one document: the form, the preview beside it, and saving.

import { busy, confirmed } from "/components/actions.js";
import { $, element } from "/components/elements.js";
import { complain, toast } from "/components/toast.js";
import { factsOf, get, post, put } from "./api.js";
import { readDesigns, rememberDesign, usualDesign } from "./designs.js";
import { exportDocuments } from "./exporting.js";
import { Form } from "./form.js";
import { remembered, rememberOptions } from "./options.js";
import { parsed } from "./paths.js";
import { Preview } from "./preview.js";
import { complete, withoutEmpty } from "./resume.js";
import { openSession } from "./sessions.js";

const AGAIN_MS = 3_000;

// What the server has, or null for a new document; what the form shows; and what was saved last.
let record = null;
let resume = complete({});
let saved = "";
let form = null;

const content = () => withoutEmpty(resume);
const isChanged = () => JSON.stringify(content()) !== saved;

// The preview

const preview = new Preview({
  read: () => ({ document: content(), options: { ...look(), template: $("design").value, pageSize: $("page-size").value } }),
  refused: (path, text) => {
    form.clearProblems();
    const found = form.complain(path, text);
    if (!found) return preview.showProblem([text]);
    const link = element("button", found.place, { type: "button", class: "link" });
    link.onclick = () => { show("form"); form.reveal(found); };
    preview.showProblem([link, `: ${text} The preview shows the last valid version.`]);
  },
  accepted: () => form.clearProblems(),
});

const look = () => ({ ...(remembered().margins && { margins: remembered().margins }) });

function showDesignChoice(designs) {
  $("design").replaceChildren(...designs.map(({ slug, name }) => element("option", name, { value: slug })));
  $("design").value = usualDesign();
  $("page-size").value = remembered().pageSize ?? "Letter";
  $("design").onchange = () => { rememberDesign($("design").value); preview.update(0); };
  $("page-size").onchange = () => { rememberOptions({ ...remembered(), pageSize: $("page-size").value }); preview.update(0); };
}

// On a narrow screen either the form or the preview is shown.

function show(view) {
  $("editor").dataset.view = view;
  $("show-form").ariaPressed = String(view === "form");
  $("show-preview").ariaPressed = String(view === "preview");
}

$("show-form").onclick = () => show("form");
$("show-preview").onclick = () => show("preview");

// Saving

function showState() {
  const name = resume.basics.name?.trim() || (record ? record.name : "New document");
  $("title").textContent = name;
  document.title = `${isChanged() ? "• " : ""}${name} · Resumes`;
  $("saved").textContent = isChanged() ? "Not saved yet" : record ? `Saved, version ${record.version}` : "";
}

function changed() {
  showState();
  preview.update();
}

async function save() {
  const body = content();
  form.clearProblems();
  try {
    record = record ? await put(`/documents/${record.id}?version=${record.version}`, body) : await post("/documents", body);
  } catch (error) {
    if (error.code !== "STALE_VERSION") return refuse(error);
    return resolveStale(factsOf(error).version, body);
  }
  saved = JSON.stringify(body);
  if (location.pathname !== `/documents/${record.id}`) history.replaceState(null, "", `/documents/${record.id}`);
  showState();
  return true;
}

function refuse(error) {
  const { path, reason } = factsOf(error);
  const found = path && form.complain(parsed(path), reason ?? error.message);
  if (!found) throw error;
  show("form");
  form.reveal(found);
  return false;
}

async function resolveStale(version, body) {
  $("stale-text").textContent = `The server has version ${version ?? "a newer one"}. You began with version ${record.version}.`;
  await confirmed($("stale"));
  const answer = $("stale").returnValue;
  if (answer === "reload") await load(record.id);
  if (answer !== "copy") return false;
  record = await post("/documents", body);
  saved = JSON.stringify(body);
  history.replaceState(null, "", `/documents/${record.id}`);
  toast("Your version is saved as a new document.", { kind: "good" });
  showState();
  return true;
}

$("form").onsubmit = (event) => {
  event.preventDefault();
  busy($("save"), save);
};
addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "s" || !(event.ctrlKey || event.metaKey) || document.querySelector("dialog[open]")) return;
  event.preventDefault();
  busy($("save"), save);
});
addEventListener("beforeunload", (event) => { if (form && isChanged()) event.preventDefault(); });

$("export-it").onclick = ({ target }) => busy(target, async () => {
  if ((!record || isChanged()) && !await save()) return;
  if (await exportDocuments([record], { template: $("design").value })) location.assign("/#exports");
});

// Opening

async function load(id) {
  const { document: stored = {}, resume: current, ...facts } = id ? await get(`/documents/${id}`) : {};
  record = id ? facts : null;
  // With fields that the form does not know: they stay as they are.
  resume = complete(structuredClone(current ?? stored));
  saved = id ? JSON.stringify(content()) : JSON.stringify({});
  form = new Form($("form"), resume, changed);
  $("loading").hidden = true;
  $("editor").hidden = false;
  showState();
  preview.update(0);
  if (!id) form.focus();
}

async function start() {
  await openSession();
  const [id] = location.pathname.split("/").slice(-1).filter((each) => each !== "new");
  try {
    showDesignChoice(await readDesigns());
    await load(id);
  } catch (error) {
    $("loading").hidden = error.isFinal;
    $("gone").hidden = ![404, 410, 422].includes(error.status);
    if (!error.isFinal) {
      $("problem").textContent = error.message;
      setTimeout(start, AGAIN_MS);
    } else if ($("gone").hidden) complain(error);
  }
}

start();
