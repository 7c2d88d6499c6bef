// Who uses this page: a tenant with a key, or anybody on the server's own machine until there is one.

import { $ } from "/components/elements.js";
import { call, post } from "/components/http.js";
import { Session } from "/components/session.js";

const session = new Session({
  read: () => call("/api/session"),
  begin: (key) => post("/api/session", { key }),
  end: () => call("/api/session", { method: "DELETE" }),
  name: ({ tenant }) => tenant,
  isByKey: ({ signedIn }) => signedIn,
  content: $("content"),
  place: $("session"),
  label: "Your key",
  report: (error) => { $("problem").textContent = error?.message ?? ""; },
});

export const openSession = () => session.open();
