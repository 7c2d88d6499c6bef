// The designs of the server, and the choice between them.

import { element } from "/components/elements.js";
import { address, get } from "./api.js";
import { loadWhenSeen } from "./thumbnails.js";

const REMEMBERED = "resumes.design";

let designs = [];

/** Reads the designs once. */
export async function readDesigns() {
  if (!designs.length) designs = await get("/templates");
  return designs;
}

export const designName = (slug) => designs.find((design) => design.slug === slug)?.name ?? slug;

/** The design that was chosen last in this browser. */
export function usualDesign() {
  const known = recall();
  return (designs.find(({ slug }) => slug === known) ?? designs[0])?.slug ?? "minimal";
}

export function rememberDesign(slug) {
  try {
    localStorage.setItem(REMEMBERED, slug);
  } catch {
    // A browser may refuse to store anything.
  }
}

function recall() {
  try {
    return localStorage.getItem(REMEMBERED);
  } catch {
    return null;
  }
}

/** Radio buttons, each with a picture of the document in that design. */
export function showDesigns(group, { id, version }, chosen) {
  group.querySelectorAll("label").forEach((label) => label.remove());
  group.append(...designs.map(({ slug, name, description }) => {
    const input = element("input", [], { type: "radio", name: "template", value: slug, class: "unseen", ...(slug === chosen && { checked: "" }) });
    const image = element("img", [], { alt: "", class: "sheet", width: 170, height: 220 });
    loadWhenSeen(image, address(`/documents/${id}/thumbnail?template=${slug}&version=${version}`));
    return element("label", [input, element("span", image, { class: "paper" }), element("b", name)], { class: "design", title: description ?? "" });
  }));
}
