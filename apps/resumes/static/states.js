// The states of an export in words.

const KINDS = { pending: "waiting", processing: "active", completed: "done", failed: "failed", cancelled: "cancelled" };
const WORDS = { pending: "Waiting", completed: "Done", failed: "Failed", cancelled: "Cancelled" };
// What happens from each progress on.
const STEPS = [[90, "Saving"], [75, "Writing the PDF"], [50, "Laying out"], [25, "Reading"], [0, "Starting"]];

export const kindOf = (status) => KINDS[status];
export const isEnded = (status) => ["completed", "failed", "cancelled"].includes(status);
export const isExpired = ({ status, expiresAt, expiredAt }) => status === "completed" && Boolean(expiredAt || (expiresAt && Date.parse(expiresAt) <= Date.now()));

/** Whether the file of an export can be downloaded. */
export const isThere = (job) => job.status === "completed" && !isExpired(job);

export function stateOf(job) {
  if (isExpired(job)) return "Expired";
  return WORDS[job.status] ?? STEPS.find(([from]) => (job.progress ?? 0) >= from)[1];
}

/** The later of two views of one export, which may arrive in any order. */
export function later(one, other) {
  if (!one) return other;
  const rank = ({ status, progress }) => (isEnded(status) ? 2 : status === "processing" ? 1 : 0) * 1000 + (progress ?? 0);
  return rank(one) > rank(other) ? { ...other, status: one.status, progress: one.progress, error: one.error } : other;
}
