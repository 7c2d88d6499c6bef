// Repeating a run every month.

import { busy } from "/components/actions.js";
import { $ } from "/components/elements.js";
import { call, post } from "/components/http.js";
import { toast } from "/components/toast.js";

/** `schedule` is that of the site, or null. */
export function showSchedule(address, schedule) {
  const isOn = schedule !== null;
  $("schedule").hidden = false;
  $("schedule-text").textContent = isOn ? `Repeats every month, next on ${day(schedule.nextAt)}.` : "";
  $("monthly").textContent = isOn ? "Stop repeating" : "Repeat monthly";
  $("monthly").onclick = () => busy($("monthly"), async () => {
    if (isOn) {
      await call(`${address}/schedule`, { method: "DELETE" });
      toast("The run is no longer repeated.", { kind: "good" });
      return showSchedule(address, null);
    }
    const saved = await post(`${address}/schedule`, { timezone: timezone() }, { method: "PUT" });
    toast(`The run is repeated every month, next on ${day(saved.nextAt)}.`, { kind: "good" });
    return showSchedule(address, saved);
  });
}

const day = (iso) => new Date(iso).toLocaleDateString(undefined, { dateStyle: "long" });

/** Of this browser. Some do not know theirs. */
const timezone = () => Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
