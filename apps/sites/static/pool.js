// One pool: its processors on each server.

import { element } from "/components/elements.js";
import { duration } from "/components/format.js";
import { call } from "/components/http.js";
import { nameOf } from "./phases.js";

const STATES = { idle: "Idle", busy: "Busy", error: "Error" };
// The sites of runs, which the pools do not name.
const sites = new Map();

export class Pool {
  #title = element("h2");
  #about = element("p", [], { class: "pool-about" });
  #bar = element("div", [], { class: "pool-bar" });
  #servers = element("div", [], { class: "servers" });
  #known = new Map();

  constructor() {
    this.element = element("section", [this.#title, this.#about, this.#bar, this.#servers], { class: "card pool" });
  }

  /** `now` is the server's time, because the clock of this machine may differ. */
  show({ phase, size, busy, error, isPaused, servers }, numbers, now) {
    this.element.dataset.phase = phase;
    this.#title.textContent = nameOf(phase);
    this.#about.replaceChildren(
      element("b", `${busy} of ${size ?? "any"} busy`),
      ...(error ? [" · ", element("span", `${error} in error`, { class: "bad" })] : []),
      ` · ${(numbers?.waiting ?? 0).toLocaleString()} waiting`,
      ...(isPaused ? [" · ", element("span", "paused", { class: "badge warn" })] : []),
    );
    this.#bar.style.setProperty("--part", `${size ? Math.min(100, 100 * busy / size) : 0}%`);
    const found = servers.map(({ worker, processors }) => this.#server(worker, processors, servers.length > 1, now));
    this.#known = new Map([...this.#known].filter(([key]) => servers.some(({ worker }) => key.startsWith(`${worker} `) || key === worker)));
    const nothing = element("p", "No server is running.", { class: "faint small" });
    replace(this.#servers, found.length ? found : [nothing]);
  }

  #server(worker, processors, isNamed, now) {
    const place = this.#kept(worker, () => element("div", [element("h3", worker), element("ul", [], { class: "processors" })], { class: "server" }));
    place.querySelector("h3").hidden = !isNamed;
    replace(place.querySelector("ul"), processors.map((each) => this.#processor(worker, each, now)));
    return place;
  }

  /** The same elements, so that the focus stays on a link. */
  #processor(worker, { name, state, since, runId, problem }, now) {
    const item = this.#kept(`${worker} ${name}`, () => element("li", [element("span", [], { class: "who-is" }), element("span", [], { class: "doing" })]));
    item.className = state;
    item.title = name;
    item.children[0].textContent = name.split("-").at(-1);
    item.children[0].ariaLabel = name;
    const key = [state, runId, problem].join(" ");
    if (item.dataset.key !== key) {
      item.dataset.key = key;
      item.children[1].replaceChildren(...doing(state, runId, problem));
    }
    const clock = item.children[1].querySelector(".since");
    if (clock) clock.textContent = since ? duration(Math.max(0, (new Date(now) - new Date(since)) / 1000)) : "";
    return item;
  }

  #kept(key, make) {
    if (!this.#known.has(key)) this.#known.set(key, make());
    return this.#known.get(key);
  }
}

function doing(state, runId, problem) {
  if (state === "idle") return [STATES.idle];
  const since = element("span", [], { class: "since number" });
  if (state === "error") return [element("span", problem ?? STATES.error, { class: "reason" }), " ", since];
  if (!runId) return ["A run of another tenant ", since];
  const link = element("a", sites.get(runId) ?? "A run", { href: `/runs/${runId}` });
  if (!sites.has(runId)) learn(runId, link);
  return [link, " ", since];
}

async function learn(runId, link) {
  try {
    const { site } = await call(`/api/runs/${runId}`);
    sites.set(runId, site);
    link.textContent = site;
  } catch {
    // The run was deleted meanwhile.
  }
}

function replace(place, items) {
  if (items.length !== place.children.length || items.some((item, at) => item !== place.children[at])) place.replaceChildren(...items);
}
