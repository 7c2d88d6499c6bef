// The choices of an upload: who transcribes it, and in which language it is.

import { $, element } from "/components/elements.js";
import { choiceOf, languagesOf } from "./providers.js";
import { languageOf } from "./stages.js";

/** `session` has the providers of this server, and its defaults. */
export function showOptions({ providers, provider, language }) {
  $("provider").replaceChildren(...providers.map((name) => element("option", choiceOf(name), { value: name })));
  $("provider").value = provider;
  $("provider").onchange = () => showLanguages(language);
  showLanguages(language);
}

function showLanguages(usual) {
  const provider = $("provider").value;
  const codes = languagesOf(provider, usual);
  const chosen = codes.find((code) => code === $("language").value) ?? codes.find((code) => code === usual) ?? codes[0];
  $("language").replaceChildren(...codes.map((code) => element("option", languageOf(code), { value: code })));
  $("language").value = chosen;
  $("given").hidden = provider !== "manual";
}

/** The fields of the form. Throws an error that says what is missing. */
export function chosenOptions(files) {
  const fields = { provider: $("provider").value, language: $("language").value };
  if (fields.provider !== "manual") return fields;
  const [transcript] = $("transcript").files;
  if (files.length !== 1 || !transcript) throw new Error("Choose one recording, and the file with its transcript.");
  return { ...fields, transcript };
}
