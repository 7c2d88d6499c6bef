// Recordings on their way to the server: one request for each, so that each has its own progress, and
// one that is refused does not stop the others.

import { element } from "/components/elements.js";
import { bytes } from "/components/format.js";
import { CallError, csrfToken, newKey } from "/components/http.js";
import { Rows } from "/components/rows.js";

const AT_ONCE = 2;
// Statuses that refuse the recording or its options. The same request would be refused again.
const REFUSED = [400, 413, 422];

export class Uploads {
  #rows;
  #uploads = new Map();
  #uploaded;

  /** `uploaded` is called with the calls of each recording. */
  constructor(list, uploaded) {
    this.#rows = new Rows(list);
    this.#uploaded = uploaded;
    addEventListener("beforeunload", (event) => { if (this.#count("waiting", "active")) event.preventDefault(); });
  }

  /** `fields` are further fields of the form: texts or files. */
  add(file, fields) {
    const key = newKey();
    this.#uploads.set(key, { key, file, fields, facts: { name: file.name, kind: "waiting", stage: "Waiting", about: bytes(file.size) } });
    this.#show();
    this.#next();
  }

  #next() {
    const next = this.#count("active") < AT_ONCE && [...this.#uploads.values()].find(({ facts }) => facts.kind === "waiting");
    if (next) this.#send(next);
  }

  async #send(upload) {
    this.#set(upload, { kind: "active", stage: "Uploading", percent: 0, content: null });
    this.#next();
    try {
      const { calls } = await sent(upload, (part) => this.#set(upload, {
        percent: 100 * part,
        about: part < 1 ? `${bytes(part * upload.file.size)} of ${bytes(upload.file.size)}` : "Checking …",
      }));
      this.#remove(upload);
      this.#uploaded(calls);
    } catch (error) {
      this.#set(upload, { kind: "failed", stage: "Not uploaded", about: error.message, percent: null, content: this.#buttons(upload, REFUSED.includes(error.status)) });
    }
    this.#next();
  }

  #buttons(upload, isRefused) {
    const again = element("button", "Try again", { type: "button", class: "button quiet" });
    const away = element("button", "Dismiss", { type: "button", class: isRefused ? "button quiet" : "button plain" });
    again.onclick = () => { this.#set(upload, { kind: "waiting", stage: "Waiting", content: null }); this.#next(); };
    away.onclick = () => this.#remove(upload);
    return isRefused ? [away] : [again, away];
  }

  #set(upload, facts) {
    Object.assign(upload.facts, facts);
    this.#rows.set(upload.key, facts);
  }

  #remove(upload) {
    this.#uploads.delete(upload.key);
    this.#show();
  }

  #show() {
    this.#rows.show([...this.#uploads].map(([key, { facts }]) => [key, facts]));
  }

  #count(...kinds) {
    return [...this.#uploads.values()].filter(({ facts }) => kinds.includes(facts.kind)).length;
  }
}

/** Sends one recording. `fetch` does not report how much it has sent, so this is an XMLHttpRequest. If no
 * answer comes, the recording is sent again with the same key, so that the server makes only one call. */
function sent({ key, file, fields }, progress) {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  form.append("recordings", file);
  const request = new XMLHttpRequest();
  request.open("POST", "/api/calls");
  request.setRequestHeader("Idempotency-Key", key);
  const token = csrfToken();
  if (token) request.setRequestHeader("X-CSRF-Token", token);
  request.upload.onprogress = ({ loaded, total }) => progress(loaded / total);
  return new Promise((resolve, reject) => {
    request.onload = () => {
      const body = parsed(request.responseText);
      if (request.status === 202 && body.calls) resolve(body); else reject(new CallError(request.status, body));
    };
    request.onerror = request.onabort = () => reject(new CallError(0));
    request.send(form);
  });
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
