// A menu of links: <details class="menu"><summary class="button">…</summary><ul>…</ul></details>

/** Closes the menu with Escape, with a click elsewhere, and after a choice. */
export function closable(menu) {
  const close = () => { menu.open = false; };
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    close();
    menu.querySelector("summary").focus();
  });
  menu.addEventListener("click", ({ target }) => { if (target.closest("a")) close(); });
  menu.addEventListener("focusout", ({ relatedTarget }) => { if (relatedTarget && !menu.contains(relatedTarget)) close(); });
  addEventListener("pointerdown", ({ target }) => { if (!menu.contains(target)) close(); });
}
