// The options of an export as a form: read, remembered, and with the server's problems at their fields.

import { element } from "/components/elements.js";

const REMEMBERED = "resumes.options";
const CHOICES = ["pageSize", "colorMode", "quality"];
const SIDES = ["top", "right", "bottom", "left"];
const TEXTS = ["title", "author", "subject", "creator", "keywords"];

/** The options that the form says, without properties of the PDF that are empty. */
export function optionsIn(form) {
  const value = (name) => new FormData(form).get(name);
  const metadata = Object.fromEntries(TEXTS.map((name) => [name, value(`metadata.${name}`).trim()]).filter(([, text]) => text));
  return {
    template: value("template"),
    ...Object.fromEntries(CHOICES.map((name) => [name, value(name)])),
    margins: Object.fromEntries(SIDES.map((side) => [side, Number(value(`margins.${side}`))])),
    ...(Object.keys(metadata).length && { metadata }),
  };
}

/** Fills the form with what was chosen last in this browser. Properties of the PDF belong to one document. */
export function recallOptions(form) {
  form.reset();
  const { margins = {}, ...choices } = remembered();
  for (const name of CHOICES) for (const input of form.elements[name]) if (input.value === choices[name]) input.checked = true;
  for (const side of SIDES) if (margins[side] != null) form.elements[`margins.${side}`].value = margins[side];
}

export function rememberOptions({ pageSize, colorMode, quality, margins }) {
  try {
    localStorage.setItem(REMEMBERED, JSON.stringify({ pageSize, colorMode, quality, margins }));
  } catch {
    // A browser may refuse to store anything.
  }
}

export function remembered() {
  try {
    return JSON.parse(localStorage.getItem(REMEMBERED)) ?? {};
  } catch {
    return {};
  }
}

/** Shows a problem at the field of this name, such as `options.margins.top`. Returns whether there is one. */
export function complainAt(form, name, text) {
  const field = name?.replace(/^options\./, "").replace(/\[.*/, "");
  const found = field && form.elements[field];
  const input = found instanceof RadioNodeList ? found[0] : found;
  if (!input) return false;
  const problem = element("p", text, { class: "problem small", role: "alert" });
  input.setAttribute("aria-invalid", "true");
  (input.closest(".field, fieldset")).append(problem);
  const more = input.closest("details");
  if (more) more.open = true;
  input.focus();
  return true;
}

export function clearProblems(form) {
  for (const problem of form.querySelectorAll(".problem")) problem.remove();
  for (const input of form.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
}
