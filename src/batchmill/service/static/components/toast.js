// Short messages above the page, for errors and results that have no place of their own on it.

import { element } from "./elements.js";

const MOST = 4;
const SECONDS = 6;

let stack = null;

/** Shows a message. `kind` is "bad", "good" or "". A bad one stays until it is closed; others
 * disappear, but not while they have the pointer or the focus. `action` is `{ label, run }`. */
export function toast(text, { kind = "", action = null, seconds = kind === "bad" ? 0 : SECONDS } = {}) {
  stack ??= document.body.appendChild(element("section", [], { class: "toasts", "aria-label": "Notifications" }));
  [...stack.children].find((each) => each.firstChild.textContent === text)?.remove();
  if (stack.children.length >= MOST) stack.firstChild.remove();
  const made = element("div", [element("p", text)], { class: `toast ${kind}`.trim(), role: kind === "bad" ? "alert" : "status" });
  let before = null;
  const close = () => {
    const hasFocus = made.contains(document.activeElement);
    made.remove();
    if (hasFocus) before?.focus();
  };
  made.addEventListener("focusin", (event) => { before ??= event.relatedTarget; });
  made.append(button("✕", "plain", close));
  made.lastChild.setAttribute("aria-label", "Close");
  if (action) made.append(element("div", [button(action.label, "quiet", () => { close(); action.run(); })], { class: "actions" }));
  made.addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
  stack.append(made);
  if (seconds) expire(made, seconds);
}

/** Shows why something failed. */
export function complain(error) {
  toast(error.message, { kind: "bad" });
}

function button(label, kind, run) {
  const made = element("button", label, { type: "button", class: `button ${kind}` });
  made.onclick = run;
  return made;
}

function expire(shown, seconds) {
  setTimeout(() => {
    if (shown.matches(":hover, :focus-within")) expire(shown, seconds); else shown.remove();
  }, seconds * 1000);
}
