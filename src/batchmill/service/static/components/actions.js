// What buttons do.

import { complain, toast } from "./toast.js";

/** Runs `work` once at a time, and shows on the button that it runs. Does not set `disabled`, which
 * would remove the focus. */
export async function busy(button, work, report = complain) {
  if (button.ariaDisabled) return;
  button.ariaDisabled = button.ariaBusy = "true";
  try {
    await work();
  } catch (error) {
    report(error);
  } finally {
    button.ariaDisabled = button.ariaBusy = null;
  }
}

/** Opens a `<dialog>` with a `<form method="dialog">`. Resolves to true if its button with the value
 * "yes" closes it. */
export function confirmed(dialog) {
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

export async function copy(text, done = "Copied.") {
  try {
    await navigator.clipboard.writeText(text);
    toast(done, { kind: "good" });
  } catch {
    prompt("Copy this:", text);
  }
}

/** Shows the buttons of a group as one choice. Returns a function that selects a value. */
export function choices(group, options, chosen) {
  const select = (value) => {
    for (const button of group.children) button.ariaPressed = String(button.value === value);
  };
  const isSame = [...group.children].map((button) => button.value).join("\0") === options.map(([value]) => value).join("\0");
  // Buttons with the same values are kept, so that the focus stays.
  if (!isSame) {
    group.replaceChildren(...options.map(([value, label]) => {
      const button = Object.assign(document.createElement("button"), { type: "button", className: "button quiet", value });
      button.append(label);
      return button;
    }));
  }
  group.onclick = ({ target }) => {
    const button = target.closest("button");
    if (button) { select(button.value); chosen(button.value); }
  };
  return select;
}
