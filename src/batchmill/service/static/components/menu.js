// A menu: <details class="menu"><summary class="button quiet">Download</summary><ul><li><a …></li></ul></details>

import { element } from "./elements.js";

/** A menu of links and buttons. `label` is what screen readers read, if the text is only a sign. */
export function menu(text, items, { label = null, kind = "quiet" } = {}) {
  const made = element("details", [
    element("summary", text, { class: `button ${kind}`, ...(label && { "aria-label": label }) }),
    element("ul", items.map((item) => element("li", item))),
  ], { class: "menu" });
  closable(made);
  return made;
}

/** Closes the menu with Escape, with a click elsewhere, and after a choice. */
export function closable(menu) {
  const close = () => { menu.open = false; };
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    // The page may use the key for something else.
    event.preventDefault();
    close();
    menu.querySelector("summary").focus();
  });
  menu.addEventListener("click", ({ target }) => {
    if (!target.closest("li :is(a, button)")) return;
    // A dialog that a choice opens gives the focus back to the summary, because the choice is hidden then.
    menu.querySelector("summary").focus();
    close();
  }, { capture: true });
  menu.addEventListener("focusout", ({ relatedTarget }) => { if (relatedTarget && !menu.contains(relatedTarget)) close(); });
  // Only while it is open, so that a page may have hundreds of menus.
  const outside = ({ target }) => { if (!menu.contains(target)) close(); };
  menu.addEventListener("toggle", () => {
    if (menu.open) addEventListener("pointerdown", outside); else removeEventListener("pointerdown", outside);
  });
}
