// Who uses this page: a user with a key, or anybody on the server's own machine until there is one.

import { $ } from "/components/elements.js";
import { Session } from "/components/session.js";
import { get, post, remove } from "./api.js";

const session = new Session({
  read: () => get("/session"),
  begin: (key) => post("/session", { key }),
  end: () => remove("/session"),
  name: ({ userId }) => userId,
  isByKey: ({ signedIn }) => signedIn,
  content: $("content"),
  place: $("session"),
  label: "Your key",
  report: (error) => { $("problem").textContent = error?.message ?? ""; },
});

export const openSession = () => session.open();
