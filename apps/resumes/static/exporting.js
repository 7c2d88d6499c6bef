// The dialog that exports documents: its options, and why the server refuses.

import { busy } from "/components/actions.js";
import { $, element } from "/components/elements.js";
import { bytes, counted } from "/components/format.js";
import { factsOf, post } from "./api.js";
import { readDesigns, rememberDesign, showDesigns, usualDesign } from "./designs.js";
import { clearProblems, complainAt, optionsIn, recallOptions, rememberOptions } from "./options.js";

const NAMED = 3;
export const MOST = 10;

let made = null;

/** Adds the dialog to the page. */
async function dialog() {
  made ??= (async () => {
    const answer = await fetch("/static/export.html");
    if (!answer.ok) throw new Error("The server does not respond. Try again.");
    const parsed = new DOMParser().parseFromString(await answer.text(), "text/html");
    return document.body.appendChild(document.adoptNode(parsed.querySelector("dialog")));
  })().catch((error) => { made = null; throw error; });
  return made;
}

/** Asks for the options and exports the documents. Resolves to the server's answer, with `jobIds`, or
 * to null if it was cancelled. `template` is the design to begin with. */
export async function exportDocuments(documents, { template = null } = {}) {
  const [box] = await Promise.all([dialog(), readDesigns()]);
  const form = $("export-form");
  const thing = documents.length === 1 ? "document" : counted(documents.length, "document");
  $("export-title").textContent = documents.length === 1 ? `Export ${documents[0].name}` : `Export ${thing}`;
  $("export-start").textContent = documents.length === 1 ? "Export" : `Export ${thing}`;
  $("export-names").textContent = documents.length === 1 ? "" : namesOf(documents);
  recallOptions(form);
  clear(form);
  showDesigns($("export-designs"), documents[0], template ?? usualDesign());
  box.showModal();
  form.querySelector("[name=template]:checked")?.focus();
  return new Promise((resolve) => {
    let answer = null;
    form.oninput = () => clear(form);
    form.onsubmit = (event) => {
      event.preventDefault();
      busy($("export-start"), async () => {
        clear(form);
        answer = await sent(documents, optionsIn(form));
        rememberOptions(optionsIn(form));
        rememberDesign(optionsIn(form).template);
        box.close();
      }, (error) => refuse(form, error));
    };
    $("export-close").onclick = $("export-cancel").onclick = () => box.close();
    box.onclose = () => resolve(answer);
  });
}

async function sent(documents, options) {
  if (documents.length > 1) return post("/export/batch", { documentIds: documents.map(({ id }) => id), options });
  const job = await post("/export/pdf", { documentId: documents[0].id, options });
  return { ...job, jobIds: [job.jobId] };
}

function namesOf(documents) {
  const names = documents.slice(0, NAMED).map(({ name }) => name);
  if (documents.length > NAMED) names.push(`${documents.length - NAMED} more`);
  return new Intl.ListFormat("en").format(names);
}

function clear(form) {
  clearProblems(form);
  $("export-problem").hidden = true;
}

function refuse(form, error) {
  const { field, reason } = factsOf(error);
  if (complainAt(form, field, reason ?? error.message)) return;
  $("export-problem").replaceChildren(...refusal(error).map((text) => element("p", text)));
  $("export-problem").hidden = false;
  $("export-problem").scrollIntoView({ block: "nearest" });
}

/** What happened, and what to do. */
function refusal(error) {
  const { used, limit } = factsOf(error);
  if (error.status === 507) return ["Your storage is full.", `${bytes(used ?? 0)} of ${bytes(limit ?? 0)} are used. Delete finished exports to free space, or wait until they expire.`];
  if (error.status === 429 && limit != null) {
    const [left, again] = [limit - used, whenAgain(error.retryAfter)];
    if (left > 0) return [`You can begin ${counted(left, "more export")} today.`, `${used} of ${limit} are used. Select fewer documents, or wait until ${again}.`];
    return ["You have reached today's limit.", `${used} of ${limit} are used. You can export again from ${again}.`];
  }
  return [error.message];
}

function whenAgain(seconds) {
  if (!seconds) return "tomorrow";
  return new Date(Date.now() + 1000 * seconds).toLocaleString(undefined, { weekday: "long", hour: "numeric", minute: "2-digit" });
}
