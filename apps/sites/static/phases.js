// The phases and the states of a run in words.

export const PHASES = ["website-analysis", "prompt-forming", "model-analysis"];
export const ENDED = ["completed", "failed", "cancelled"];

// What each phase adds to the progress of a run, in percent.
const SHARES = { "website-analysis": [0, 50], "prompt-forming": [50, 55], "model-analysis": [55, 100] };
const STATES = {
  "not-started": "Waiting",
  "website-analysis": "Reading the website",
  "prompt-forming": "Forming questions",
  "model-analysis": "Asking models",
  completed: "Completed",
  failed: "Failed",
  cancelled: "Cancelled",
};
const NAMES = { "website-analysis": "Website analysis", "prompt-forming": "Prompt forming", "model-analysis": "Model analysis" };

const ABOUT = {
  "website-analysis": "Reads the pages of the site, its facts and what to improve",
  "prompt-forming": "Makes up to seven questions from the facts",
  "model-analysis": "Asks each model each question, and looks for the business in the answers",
};

export const isEnded = (status) => ENDED.includes(status);
export const stateOf = (status) => STATES[status] ?? status;
export const nameOf = (phase) => NAMES[phase] ?? phase;
export const meaningOf = (phase) => ABOUT[phase] ?? "";
export const stepOf = (phase) => Math.max(1, PHASES.indexOf(phase) + 1);

export function kindOf(status) {
  if (status === "completed") return "done";
  if (status === "not-started") return "waiting";
  return isEnded(status) ? status : "active";
}

/** How far the current phase is, from the progress of the whole run. Null before it has begun. */
export function percentIn(phase, progress) {
  const [first, last] = SHARES[phase] ?? [0, 100];
  if (progress == null || progress <= first) return null;
  return Math.min(100, 100 * (progress - first) / (last - first));
}

/** The host of an address, without www. */
export function siteOf(text) {
  const trimmed = text.trim().toLowerCase();
  try {
    return new URL(trimmed.includes("://") ? trimmed : `https://${trimmed}`).host.replace(/^www\./, "");
  } catch {
    return trimmed;
  }
}
