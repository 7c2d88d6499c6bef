// The picture of a page beside the form. It follows the form with a short delay, one request at a time;
// the previous picture stays until the next one is there.

import { $, element } from "/components/elements.js";
import { counted } from "/components/format.js";
import { factsOf, post } from "./api.js";
import { parsed } from "./paths.js";

const DELAY_MS = 500;
const AGAIN_MS = 3_000;

export class Preview {
  #read;
  #refused;
  #accepted;
  #page = 1;
  #count = 1;
  #timer = null;
  #isBusy = false;
  #isStale = false;

  /** `read()` is the body of a request, without the page. `refused(path, text)` is called if the document
   * is invalid there, and `accepted()` if it is valid. */
  constructor({ read, refused, accepted }) {
    this.#read = read;
    this.#refused = refused;
    this.#accepted = accepted;
    $("before").onclick = () => this.#turn(-1);
    $("after").onclick = () => this.#turn(1);
    this.#showPages();
  }

  /** Something has changed. */
  update(delay = DELAY_MS) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#send(), delay);
  }

  async #send() {
    if (this.#isBusy) {
      this.#isStale = true;
      return;
    }
    this.#isBusy = true;
    this.#isStale = false;
    this.#state("connecting", "Updating …");
    try {
      this.#show(await post("/preview", { ...this.#read(), page: this.#page }));
      this.#accepted();
    } catch (error) {
      this.#fail(error);
    }
    this.#isBusy = false;
    if (this.#isStale) this.update(0);
  }

  #show({ image, page, pageCount, warnings }) {
    this.#page = page;
    this.#count = pageCount;
    $("picture").src = image;
    $("picture").hidden = false;
    $("blank").hidden = true;
    $("preview-problem").hidden = true;
    $("warnings").hidden = !warnings.length;
    $("warnings").querySelector("ul").replaceChildren(...warnings.map((text) => element("li", text)));
    this.#state("live", counted(pageCount, "page"));
    this.#showPages();
  }

  #fail(error) {
    const { path, reason } = factsOf(error);
    $("blank").classList.remove("skeleton");
    if (path) {
      this.#state("failed", "Not updated");
      this.#refused(parsed(path), reason ?? error.message);
    } else if (error.isFinal) {
      this.#state("failed", "Not updated");
      this.showProblem([error.message]);
    } else {
      this.#state("reconnecting", "Waiting for the server …");
      this.update(1000 * (error.retryAfter ?? 0) || AGAIN_MS);
    }
  }

  /** Why the picture is not up to date. */
  showProblem(content) {
    $("preview-problem").replaceChildren(element("p", content));
    $("preview-problem").hidden = false;
  }

  #turn(by) {
    const page = this.#page + by;
    if (page < 1 || page > this.#count) return;
    this.#page = page;
    this.#showPages();
    this.update(0);
  }

  #showPages() {
    $("pages").textContent = `Page ${this.#page} of ${this.#count}`;
    $("before").ariaDisabled = this.#page <= 1 ? "true" : null;
    $("after").ariaDisabled = this.#page >= this.#count ? "true" : null;
    document.querySelector(".pager").hidden = this.#count < 2;
    $("picture").alt = `Page ${this.#page} of ${this.#count} in the chosen design`;
  }

  #state(name, text) {
    $("preview-state").dataset.state = name;
    $("preview-state").textContent = text;
  }
}
