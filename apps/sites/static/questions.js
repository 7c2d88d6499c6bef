// The questions, which can be edited and asked.

import { busy } from "/components/actions.js";
import { element } from "/components/elements.js";
import { counted } from "/components/format.js";
import { post } from "/components/http.js";

const MOST = 7;
const LONGEST = 500;
const FACTS = { businessName: "name", industry: "industry", location: "location", description: "description", keywords: "keywords", openingHours: "opening hours" };

export function questions({ report: { prompts, modelAnalysis: { state } }, address, providers }) {
  const isWaiting = state === "skipped: not_asked";
  const list = element("ol", prompts.map((prompt) => item(prompt, changed)), { class: "prompts" });
  const problem = element("p", [], { class: "problem", role: "alert" });
  const more = element("button", "Add a question", { type: "button", class: "button plain" });
  const ask = element("button", "Ask these questions", { class: `button${isWaiting ? "" : " quiet"}` });
  const form = element("form", [list, problem, element("div", [ask, more, element("span", hint(providers), { class: "faint small" })], { class: "actions" })]);

  function changed() {
    problem.textContent = "";
    more.hidden = list.children.length >= MOST;
    for (const [at, each] of [...list.children].entries()) each.querySelector("textarea").ariaLabel = `Question ${at + 1}`;
  }
  more.onclick = () => {
    list.append(item({ text: "", kind: "own", facts: [] }, changed));
    changed();
    list.lastChild.querySelector("textarea").focus();
  };
  form.onsubmit = (event) => {
    event.preventDefault();
    busy(ask, async () => {
      const { id } = await post(`${address}/repeat`, { prompts: given(list) });
      location.assign(`/runs/${id}`);
    }, (error) => { problem.textContent = messageOf(error); });
  };
  changed();
  return [
    element("p", `${counted(prompts.length, "question")}, made from the facts. General questions never name the business; a direct one does, and is not scored. ${isWaiting ? "" : "Edit them to ask others: that begins a new run."}`, { class: "faint small" }),
    form,
  ];
}

const hint = (providers) => (providers.length ? `${counted(providers.length, "model")} will be asked, in a new run.` : "No model is configured, so the questions get no answers.");

/** What the list has now. A question keeps its id while it is the same one. */
function given(list) {
  return [...list.children].map((each) => ({ text: each.querySelector("textarea").value.trim(), ...(each.dataset.id && { id: each.dataset.id }) })).filter(({ text }) => text);
}

/** The server names the field, such as prompts[2].text. */
function messageOf(error) {
  const [fault] = error.body?.errors ?? [];
  const at = fault?.path?.match(/prompts\[(\d+)\]/)?.[1];
  return at === undefined ? error.message : `Question ${Number(at) + 1}: ${fault.reason}`;
}

function item({ id = "", text, kind, facts }, changed) {
  const area = element("textarea", text, { rows: "1", maxlength: String(LONGEST), required: "" });
  const remove = element("button", "✕", { type: "button", class: "button plain", "aria-label": "Remove this question" });
  const about = kind === "own" ? "Your own question" : [kind === "direct" ? "Direct" : "General", ...(facts.length ? [`from ${facts.map((fact) => FACTS[fact] ?? fact).join(", ")}`] : [])].join(" · ");
  const made = element("li", [area, remove, element("small", about)], { ...(id && { "data-id": id }) });
  // One line: the server refuses line breaks.
  area.onkeydown = (event) => { if (event.key === "Enter") { event.preventDefault(); area.form.requestSubmit(); } };
  area.oninput = () => {
    if (area.value.includes("\n")) area.value = area.value.replace(/\s*\n\s*/g, " ");
    changed();
  };
  remove.onclick = () => {
    const next = made.nextElementSibling ?? made.previousElementSibling;
    made.remove();
    changed();
    next?.querySelector("textarea").focus();
  };
  return made;
}
