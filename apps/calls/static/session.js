// Who is signed in. Both pages have the same header and the same form.

import { busy } from "/components/actions.js";
import { $, element, hide } from "/components/elements.js";
import { call, post } from "/components/http.js";

const AGAIN_MS = 3_000;

let signedIn = () => {};

/** Resolves to the session. Shows the form until somebody has signed in. */
export async function openSession() {
  for (;;) {
    try {
      const session = await call("/api/session");
      showOrganisation(session);
      $("problem").textContent = "";
      return session;
    } catch (error) {
      if (error.status === 401) await askForKey(); else await waitAfter(error);
    }
  }
}

async function waitAfter(error) {
  $("problem").textContent = error.message;
  await new Promise((resolve) => { setTimeout(resolve, 1000 * (error.retryAfter ?? 0) || AGAIN_MS); });
}

/** Shows the form instead of the page. Resolves when the server has accepted a key. */
async function askForKey() {
  hide($("content"), true);
  $("session").replaceChildren();
  $("sign-in").hidden = false;
  $("key").focus();
  await new Promise((resolve) => { signedIn = resolve; });
  hide($("sign-in"), true, $("main"));
  $("content").hidden = false;
}

$("sign-in").onsubmit = (event) => {
  event.preventDefault();
  $("key-problem").textContent = "";
  $("key").ariaInvalid = null;
  busy(event.submitter, async () => {
    await post("/api/session", { key: $("key").value.trim() });
    $("key").value = "";
    signedIn();
  }, (error) => {
    $("key-problem").textContent = error.message;
    $("key").ariaInvalid = "true";
    $("key").focus();
  });
};

function showOrganisation({ orgId, signedIn: byKey }) {
  const name = element("span", [element("span", "Organisation ", { class: "unseen" }), orgId], { class: "organisation", title: orgId });
  const out = element("button", "Sign out", { type: "button", class: "button plain" });
  out.onclick = () => busy(out, async () => {
    await call("/api/session", { method: "DELETE" });
    location.reload();
  });
  $("session").replaceChildren(name, ...(byKey ? [out] : []));
}
