// The form for new runs, and the line that says which models are asked.

import { busy } from "/components/actions.js";
import { $, element, hide } from "/components/elements.js";
import { counted } from "/components/format.js";
import { newKey, post } from "/components/http.js";

const LINE_REM = 1.6;
const MOST_LINES = 12;
const COARSE = matchMedia("(pointer: coarse)");

let most = null;
let key = null;

/** `begun(runs)` is called with the runs that the server has accepted. */
export function openForm(begun) {
  $("urls").oninput = () => {
    key = null;
    $("refused").textContent = "";
    $("urls").ariaInvalid = null;
    show();
  };
  $("edit").onchange = () => { key = null; };
  // Enter sends a single address. Keyboards on screens have no Shift+Enter for another line.
  $("urls").onkeydown = (event) => {
    const isLine = event.shiftKey || addresses().length > 1 || COARSE.matches;
    if (event.key !== "Enter" || isLine || event.isComposing) return;
    event.preventDefault();
    $("submit").requestSubmit($("send"));
  };
  $("submit").onsubmit = (event) => {
    event.preventDefault();
    busy($("send"), () => send(begun), refuse);
  };
  show();
}

async function send(begun) {
  const urls = addresses();
  if (!urls.length) throw new Error("Write the address of a website.");
  if (most && urls.length > most) throw new Error(`These are ${urls.length} addresses. Write up to ${most} at once.`);
  key ??= newKey();
  const { runs } = await post("/api/runs", { urls, ask: !$("edit").checked }, { headers: { "Idempotency-Key": key } });
  key = null;
  $("submit").reset();
  show();
  begun(runs);
}

function refuse(error) {
  $("refused").textContent = error.message;
  $("urls").ariaInvalid = "true";
  $("urls").focus();
}

/** Each address once. */
function addresses() {
  return [...new Set($("urls").value.split("\n").map((line) => line.trim()).filter(Boolean))];
}

function show() {
  const count = addresses().length;
  const lines = $("urls").value.split("\n").length;
  $("urls").style.height = `${LINE_REM * Math.min(lines, MOST_LINES) + 1.1}rem`;
  $("send").textContent = count > 1 ? `Analyse ${counted(count, "website")}` : "Analyse";
}

/** Who is asked, or what it means that nobody is. */
export function showModels({ providers, maxUrls }) {
  most = maxUrls;
  hide($("edit-option"), !providers.length, $("urls"));
  $("models").replaceChildren(...(providers.length ? asked(providers) : NOBODY()));
  $("models").classList.toggle("nobody", !providers.length);
}

function asked(providers) {
  const names = providers.map(({ name, model }) => element("li", [element("b", name), " ", element("span", model, { class: "faint" })]));
  return [element("span", `Asks ${counted(providers.length, "model")}`), element("ul", names)];
}

const NOBODY = () => [element("p", [
  element("b", "No model is configured on this server. "),
  "A run still tells you what the site says about itself, what to improve, and which questions to ask. ",
  "To learn how AI answers mention a business, the operator sets ", element("code", "SITES_PROVIDERS"), ".",
])];
