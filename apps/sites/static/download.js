// Files that take a while to be made, with a message if that fails.

import { CallError } from "/components/http.js";

const KEPT_MS = 60_000;

/** Reads a file from the server and gives it to the user. */
export async function download(url, name) {
  const answer = await fetch(url).catch(() => { throw new CallError(0); });
  if (!answer.ok) throw await CallError.of(answer);
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(await answer.blob()), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEPT_MS);
}
