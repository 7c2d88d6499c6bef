// Files with JSON Resumes that become documents.

import { counted } from "/components/format.js";
import { toast } from "/components/toast.js";
import { factsOf, post } from "./api.js";

/** Imports one file after the other. Those that are refused are named with the reason. Returns the
 * documents that were made. */
export async function importFiles(files) {
  const made = [];
  for (const file of files) {
    try {
      made.push(await post("/documents", await contentOf(file)));
    } catch (error) {
      toast(`${file.name} is not imported. ${reasonOf(error)}`, { kind: "bad" });
    }
  }
  if (made.length) toast(made.length === 1 ? `${made[0].name} is imported.` : `${counted(made.length, "document")} are imported.`, { kind: "good" });
  return made;
}

async function contentOf(file) {
  const text = await file.text();
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("It does not contain JSON.");
  }
}

/** The path is part of the reason: the field is in a file, and not on the page. */
function reasonOf(error) {
  const { path } = factsOf(error);
  return path && !error.message.includes(path) ? `${path}: ${error.message}` : error.message;
}
