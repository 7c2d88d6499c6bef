// The exports of the user, live: groups in progress, the history, and the quota.

import { $, announce, hide } from "/components/elements.js";
import { counted } from "/components/format.js";
import { follow } from "/components/stream.js";
import { address, get, remove } from "./api.js";
import { Finished } from "./finished.js";
import { Group } from "./group.js";
import { fill } from "./lists.js";
import { Quota } from "./quota.js";
import { isEnded, later } from "./states.js";

const JOBS = 50;
const BATCHES = 20;
const PAGE = 20;
const SOON_MS = 400;
const MINUTE_MS = 60_000;
// Groups that have ended stay for so long, and at most so many.
const RECENT_MS = 86_400_000;
const RECENT = 3;

export class Exports {
  #jobs = new Map();
  #batches = [];
  #alone = [];
  #history = [];
  #next = null;
  #groups = new Map();
  #closed = new Set();
  #finished;
  #quota = new Quota($("quota"));
  #stream = null;
  #wanted = PAGE;
  #timers = new Map();
  #changed;

  /** `acts` are those of groups and of the history; `changed(running)` is called with the number of running exports;
   * `state(name, error)` with the state of the connection. */
  constructor(acts, { changed, state }) {
    this.#changed = changed;
    this.#acts.again = acts.again;
    this.#finished = new Finished($("finished"), { ...acts, ...this.#acts });
    this.state = state;
    setInterval(() => this.#show(), MINUTE_MS);
    $("more-history").onclick = () => {
      this.#wanted = this.#history.length + PAGE;
      this.#soon("history");
    };
  }

  open() {
    this.#stream?.close();
    this.#stream = follow(address("/stream"), {
      read: (signal) => this.#readAll(signal),
      show: (state) => this.#take(state),
      last: ({ lastEventId }) => lastEventId,
      on: {
        progress: (event) => this.#heed(event),
        completed: (event) => this.#heed(event),
        failed: (event) => this.#heed(event),
        cancelled: (event) => this.#heed(event),
        reload: () => this.#soon("all"),
      },
      changed: () => this.#show(),
      state: this.state,
    });
  }

  /** Reads everything again, and moves the focus to the group of a new export. */
  async showNew(jobIds) {
    await this.#reread();
    this.#groups.get(this.#entries().find(({ jobs }) => jobs.some((id) => jobIds.includes(id)))?.id)?.focus();
  }

  refresh() {
    this.#soon("all");
  }

  /** The position is read first: events after it may already be in the rest, and change nothing then. */
  async #readAll(signal) {
    const { jobs, lastEventId } = await get(`/export/jobs?count=${JOBS}`, { signal });
    const [{ batches }, rest] = await Promise.all([get(`/export/batches?count=${BATCHES}`, { signal }), this.#readHistory(signal)]);
    return { jobs, batches, lastEventId, ...rest };
  }

  async #readHistory(signal) {
    const [history, quota] = await Promise.all([get(`/export/history?count=${this.#wanted}`, { signal }), get("/quota", { signal })]);
    return { history: history.history, next: history.next, quota };
  }

  #take({ jobs, batches, ...rest }) {
    const known = this.#jobs;
    const found = [...batches.flatMap((batch) => batch.jobs), ...jobs];
    this.#jobs = new Map(found.map((job) => [job.id, later(known.get(job.id), job)]));
    this.#batches = batches.map(({ jobs: members, ...batch }) => ({ ...batch, jobs: members.map(({ id }) => id) }));
    const grouped = new Set(this.#batches.flatMap((batch) => batch.jobs));
    this.#alone = jobs.filter(({ id }) => !grouped.has(id));
    this.#takeHistory(rest);
  }

  #takeHistory({ history, next, quota }) {
    this.#history = history;
    this.#next = next;
    this.#quota.show(quota);
    $("loading-exports").hidden = true;
    this.#show();
  }

  #heed({ jobId, ...facts }) {
    const known = this.#jobs.get(jobId);
    if (!known) return this.#soon("all");
    if (isEnded(known.status)) return;
    this.#jobs.set(jobId, { ...known, ...facts, progress: Math.max(known.progress ?? 0, facts.progress ?? 0) });
    // Its pages, its size and its expiry are not in the event.
    if (isEnded(facts.status)) this.#soon("all");
  }

  async #reread() {
    this.#take(await this.#readAll());
  }

  /** Reads again once for several events. If that fails, the next event or the stream's next state has it. */
  #soon(what) {
    if (this.#timers.has(what)) return;
    this.#timers.set(what, setTimeout(async () => {
      this.#timers.delete(what);
      try {
        if (what === "all") await this.#reread(); else this.#takeHistory(await this.#readHistory());
      } catch (error) {
        if (error.status === 401) this.state("failed", error);
      }
    }, SOON_MS));
  }

  /** Batches, and exports outside of any, with the newest first. Those that have ended stay for a while. */
  #entries() {
    const entries = [
      ...this.#batches.map((batch) => ({ id: batch.id, batch, jobs: batch.jobs, createdAt: batch.createdAt })),
      ...this.#alone.map((job) => ({ id: job.id, batch: null, jobs: [job.id], createdAt: job.createdAt })),
    ].sort((one, other) => Date.parse(other.createdAt) - Date.parse(one.createdAt));
    const isOver = ({ jobs }) => jobs.every((id) => isEnded(this.#jobs.get(id).status));
    // A file alone is in the history, where it is enough unless somebody watches it here.
    const isKept = ({ id, jobs }) => jobs.length > 1 || this.#groups.has(id) || this.#jobs.get(jobs[0]).status !== "completed";
    const recent = entries.filter((entry) => isOver(entry) && isKept(entry) && Date.now() - Date.parse(entry.createdAt) < RECENT_MS).slice(0, RECENT);
    return entries.filter((entry) => !isOver(entry) || recent.includes(entry));
  }

  #show() {
    const entries = this.#entries();
    this.#showGroups(entries);
    this.#finished.show(this.#history);
    hide($("history"), !this.#history.length, $("exports-title"));
    hide($("more-history"), !this.#next, $("history-title"));
    $("no-exports").hidden = !$("loading-exports").hidden || entries.length > 0 || this.#history.length > 0;
    const running = [...this.#jobs.values()].filter(({ status }) => !isEnded(status)).length;
    this.#changed(running);
    if (entries.length) announce(running ? `${counted(running, "export")} in progress` : "No export is in progress");
  }

  #showGroups(entries) {
    const known = this.#groups;
    this.#groups = new Map(entries.map(({ id, batch }) => [id, known.get(id) ?? new Group(batch, this.#acts)]));
    entries.forEach(({ id, batch, jobs, createdAt }, at) => {
      const group = this.#groups.get(id);
      const members = jobs.map((job) => this.#jobs.get(job));
      group.show(batch, members, createdAt);
      // Closed once, if its end was not seen here or something newer is there. Its user may open it again.
      if ((at > 0 || !known.has(id)) && members.every(({ status }) => isEnded(status)) && !this.#closed.has(id)) {
        this.#closed.add(id);
        group.isOpen = false;
      }
    });
    fill($("groups"), this.#groups.values());
  }

  #acts = {
    cancel: async (ids) => {
      // An export that has ended meanwhile needs no cancelling.
      await Promise.all(ids.map((id) => remove(`/export/job/${id}`).catch((error) => { if (error.status !== 409) throw error; })));
      await this.#reread();
    },
    // The server counts it when the download begins, which may be after the next answer.
    downloaded: (id) => {
      const item = this.#history.find((each) => each.id === id);
      if (item) item.downloadCount += 1;
      this.#show();
    },
    expired: () => this.#soon("all"),
  };
}
