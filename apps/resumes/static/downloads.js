// Downloads that fail with a sentence, and not with an answer in JSON in the place of the page.

import { toast } from "/components/toast.js";
import { get } from "./api.js";
import { isThere } from "./states.js";

const EXPIRED = "This export has expired, or it was deleted. Export the document again.";

/** Makes a link check that its file still exists before it is followed. `exists()` asks the server; `followed()`
 * is called when the download begins, and `gone()` if there is no file any more. */
export function checked(link, exists, { followed = () => {}, gone }) {
  link.onclick = async (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return followed();
    event.preventDefault();
    try {
      if (await exists()) {
        follow(link.href);
        return followed();
      }
    } catch (error) {
      if (![404, 410].includes(error.status)) return toast(error.message, { kind: "bad" });
    }
    toast(EXPIRED, { kind: "bad" });
    gone();
  };
  return link;
}

export const hasFile = async (id) => isThere(await get(`/export/job/${id}`));
export const hasFiles = async (id) => (await get(`/export/batch/${id}`)).jobs.some(isThere);

/** The server sends it as an attachment, so the page stays. */
function follow(url) {
  const link = document.createElement("a");
  link.href = url;
  link.download = "";
  link.click();
}

/** Saves a text that the page has. */
export function save(text, name, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  Object.assign(link, { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
