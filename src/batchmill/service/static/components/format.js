// Numbers and times as people read them, in their language and time zone.

const UNITS = [["day", 86_400], ["hour", 3_600], ["minute", 60], ["second", 1]];

/** `counted(2, "sheet")` is "2 sheets". */
export function counted(count, thing, things = `${thing}s`) {
  return `${count.toLocaleString()} ${count === 1 ? thing : things}`;
}

export function bytes(count) {
  if (count < 1e6) return `${Math.ceil(count / 1e3)} kB`;
  return count < 1e9 ? `${(count / 1e6).toFixed(1)} MB` : `${(count / 1e9).toFixed(1)} GB`;
}

/** 75.2 seconds are "1 min 15 s". */
export function duration(seconds) {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** A `<time>`: how long ago it was, or when it will be, and the exact time when the pointer is over it. */
export function ago(iso) {
  const made = document.createElement("time");
  const seconds = (new Date(iso) - Date.now()) / 1000;
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
  made.dateTime = iso;
  made.title = new Date(iso).toLocaleString(undefined, { dateStyle: "full", timeStyle: "long" });
  made.textContent = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" }).format(seconds > 0 ? Math.round(seconds / size) : Math.trunc(seconds / size), unit);
  return made;
}
