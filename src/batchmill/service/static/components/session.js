// Signing in with a key: the form instead of the page, and the name with "Sign out" in its header.

import { busy } from "./actions.js";
import { element, hide } from "./elements.js";

const AGAIN_MS = 3_000;

export class Session {
  #options;
  #form = null;

  /**
   * `read()` reads the session and fails with status 401 if a key is needed; `begin(key)` and `end()`
   * begin and end one. `name(session)` is who is signed in, and `isByKey(session)` whether one can sign out.
   * `content` is hidden while the form is shown, and `place` is where the header shows the name.
   * `label` is what the key belongs to. `report(error)` shows why the session cannot be read, or null.
   */
  constructor(options) {
    this.#options = { label: "Key", isByKey: () => true, report: () => {}, ...options };
  }

  /** Resolves to the session. Shows the form until somebody has signed in. */
  async open() {
    const { read, report } = this.#options;
    for (;;) {
      try {
        const session = await read();
        report(null);
        this.#show(session);
        return session;
      } catch (error) {
        if (error.status === 401) {
          report(null);
          await this.#ask();
        } else {
          report(error);
          await new Promise((resolve) => { setTimeout(resolve, 1000 * (error.retryAfter ?? 0) || AGAIN_MS); });
        }
      }
    }
  }

  async #ask() {
    const { content, place } = this.#options;
    this.#form ??= this.#made();
    hide(content, true);
    place.replaceChildren();
    content.before(this.#form);
    this.#form.querySelector("input").focus();
    await new Promise((resolve) => { this.#form.onsubmit = (event) => this.#submit(event, resolve); });
    content.hidden = false;
    this.#form.remove();
    content.closest("[tabindex]")?.focus();
  }

  #submit(event, done) {
    event.preventDefault();
    const input = this.#form.querySelector("input");
    const problem = this.#form.querySelector(".problem");
    problem.textContent = "";
    input.ariaInvalid = null;
    busy(event.submitter, async () => {
      await this.#options.begin(input.value.trim());
      input.value = "";
      done();
    }, (error) => {
      problem.textContent = error.message;
      input.ariaInvalid = "true";
      input.focus();
    });
  }

  #made() {
    const attributes = { id: "key", type: "password", autocomplete: "current-password", required: "", "aria-describedby": "key-hint key-problem" };
    return element("form", [
      element("h1", "Sign in", { id: "sign-in-title" }),
      element("div", [
        element("label", this.#options.label, { for: "key" }),
        element("input", [], attributes),
        element("p", ["It begins with ", element("code", "bm_"), ". The operator of this server creates it."], { id: "key-hint", class: "hint" }),
      ], { class: "field" }),
      element("p", [], { id: "key-problem", class: "problem", role: "alert" }),
      element("button", "Sign in", { class: "button" }),
    ], { class: "sign-in card narrow", "aria-labelledby": "sign-in-title" });
  }

  #show(session) {
    const { name, isByKey, place, end } = this.#options;
    const who = element("span", [element("span", "Signed in as ", { class: "unseen" }), name(session)], { class: "who", title: name(session) });
    const out = element("button", "Sign out", { type: "button", class: "button plain" });
    out.onclick = () => busy(out, async () => {
      await end();
      location.reload();
    });
    place.replaceChildren(who, ...(isByKey(session) ? [out] : []));
  }
}
