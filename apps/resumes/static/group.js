// Exports that were submitted together: their progress, their files, and one ZIP for all of them.

import { busy } from "/components/actions.js";
import { element, hide } from "/components/elements.js";
import { ago, bytes, counted } from "/components/format.js";
import { Rows } from "/components/rows.js";
import { address } from "./api.js";
import { designName } from "./designs.js";
import { checked, hasFile, hasFiles } from "./downloads.js";
import { isEnded, isExpired, isThere, kindOf, stateOf } from "./states.js";

export class Group {
  #acts;
  #title = element("h3");
  #about = element("p", [], { class: "faint small" });
  #bar = element("progress", [], { max: 100 });
  #summary = element("p", [], { class: "small" });
  #cancel = element("button", "Cancel all", { type: "button", class: "button quiet" });
  #zip = element("a", [], { class: "button quiet" });
  #list = element("ol", [], { class: "rows", "aria-label": "Files" });
  #details = element("details", [element("summary", "Files", { class: "small" }), this.#list], { open: "" });
  #rows = new Rows(this.#list);
  #tools = new Map();
  #jobs = [];

  /** `batch` is null for an export alone. `acts` has `cancel(ids)`, `downloaded(id)`, `expired()` and `again(job)`. */
  constructor(batch, acts) {
    this.#acts = acts;
    if (batch) checked(this.#zip, () => hasFiles(batch.id), { gone: acts.expired });
    this.#cancel.onclick = () => busy(this.#cancel, () => acts.cancel(this.#jobs.filter(({ status }) => !isEnded(status)).map(({ id }) => id)));
    this.element = element("section", [
      element("div", [this.#title, this.#about], { class: "head" }),
      this.#bar,
      element("div", [this.#summary, element("div", [this.#cancel, this.#zip], { class: "actions" })], { class: "head" }),
      this.#details,
    ], { class: "group card", tabindex: "-1" });
  }

  /** Shows a batch, or one export, with the views of its exports. A document that is twice in a batch is one export. */
  show(batch, jobs, createdAt) {
    this.#jobs = [...new Map(jobs.map((job) => [job.id, job])).values()];
    const isAlone = this.#jobs.length === 1;
    const isOver = this.#jobs.every(({ status }) => isEnded(status));
    const title = isAlone ? this.#jobs[0].documentName : counted(this.#jobs.length, "document");
    this.element.classList.toggle("alone", isAlone);
    this.element.ariaLabel = `Export of ${title}`;
    this.#title.textContent = title;
    this.#about.replaceChildren(designName(this.#jobs[0].templateSlug), " · ", ago(createdAt));
    this.#summary.textContent = summaryOf(this.#jobs);
    this.#bar.value = meanOf(this.#jobs);
    this.#bar.ariaLabel = `Progress of ${title}`;
    this.#bar.hidden = isOver;
    hide(this.#cancel, isOver, this.element);
    this.#showZip(batch, isOver);
    this.#rows.show(this.#jobs.map((job) => [job.id, this.#facts(job, isAlone)]));
  }

  #showZip(batch, isOver) {
    hide(this.#zip, !batch || !this.#jobs.some(isThere), this.element);
    this.#zip.textContent = isOver ? "Download ZIP" : "ZIP so far";
    if (batch) this.#zip.href = address(`/export/batch/${batch.id}/download${isOver ? "" : "?partial=true"}`);
  }

  set isOpen(isOpen) {
    this.#details.open = isOpen || this.#jobs.length === 1;
  }

  focus() {
    this.element.focus();
  }

  #facts(job, isAlone) {
    const [cancel, download, again] = this.#toolsOf(job);
    const isLost = isEnded(job.status) && job.status !== "completed";
    hide(cancel, isEnded(job.status), this.element);
    hide(download, !isThere(job), this.element);
    hide(again, !isLost, this.element);
    return {
      name: job.documentName,
      kind: isExpired(job) ? "cancelled" : kindOf(job.status),
      stage: stateOf(job),
      about: aboutOf(job, isAlone),
      percent: job.status === "processing" ? job.progress ?? 0 : null,
      content: isExpired(job) ? [] : [cancel, download, again],
    };
  }

  /** The elements of an export stay the same, so that the focus stays. */
  #toolsOf(job) {
    const { id, documentName } = job;
    if (!this.#tools.has(id)) {
      const cancel = element("button", "Cancel", { type: "button", class: "button plain", "aria-label": `Cancel ${documentName}` });
      cancel.onclick = () => busy(cancel, () => this.#acts.cancel([id]));
      const download = element("a", "Download", { href: address(`/export/download/${id}`), class: "button plain", "aria-label": `Download ${documentName}` });
      const again = element("button", "Export again", { type: "button", class: "button plain", "aria-label": `Export again ${documentName}` });
      again.onclick = () => busy(again, () => this.#acts.again(job));
      checked(download, () => hasFile(id), { followed: () => this.#acts.downloaded(id), gone: this.#acts.expired });
      this.#tools.set(id, [cancel, download, again]);
    }
    return this.#tools.get(id);
  }
}

function summaryOf(jobs) {
  const count = (wanted) => jobs.filter(({ status }) => status === wanted).length;
  const others = ["failed", "cancelled"].filter(count).map((status) => `${count(status)} ${status}`);
  return [`${count("completed")} of ${jobs.length} done`, ...others].join(" · ");
}

function meanOf(jobs) {
  return jobs.reduce((sum, { status, progress }) => sum + (isEnded(status) ? 100 : progress ?? 0), 0) / jobs.length;
}

function aboutOf(job, isAlone) {
  if (job.error) return job.error.message;
  if (job.status !== "completed") return "";
  const facts = [isAlone && designName(job.templateSlug), job.pageCount && counted(job.pageCount, "page"), job.fileSize && bytes(job.fileSize)];
  return [...facts, ...(job.warnings ?? [])].filter(Boolean).join(" · ");
}
