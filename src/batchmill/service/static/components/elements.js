// Makes and hides elements, and announces changes to screen readers.

const QUIET_MS = 2_000;

export const $ = (id) => document.getElementById(id);

/** A new element. Strings in `content` become text, not HTML, so they need not be trusted. */
export function element(tag, content = [], attributes = {}) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...[content].flat());
  return made;
}

/** Hides or shows an element. If it has the focus, `instead` gets it, so that a keyboard user does
 * not start again at the top of the page. */
export function hide(hidden, isHidden, instead) {
  if (isHidden && hidden.contains(document.activeElement)) instead?.focus();
  hidden.hidden = isHidden;
}

let region = null;
let said = "";
let waiting = null;

/** Lets screen readers read `text` aloud, at most every two seconds. Of several texts, only the last
 * is read. */
export function announce(text) {
  region ??= document.body.appendChild(element("div", [], { class: "unseen", role: "status" }));
  const isWaiting = waiting !== null;
  waiting = text;
  if (isWaiting) return;
  setTimeout(() => {
    if (waiting !== said) region.textContent = said = waiting;
    waiting = null;
  }, said ? QUIET_MS : 100);
}
