// Moments of a recording: seconds from its start.

/** 75.2 is "1:15". */
export function clock(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (number) => String(number).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

/** 75.2 is "1 minute 15 seconds", for screen readers. */
export function spoken(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const parts = [[Math.floor(whole / 3600), "hour"], [Math.floor(whole / 60) % 60, "minute"], [whole % 60, "second"]];
  const named = parts.filter(([count]) => count).map(([count, unit]) => `${count} ${unit}${count === 1 ? "" : "s"}`);
  return named.join(" ") || "0 seconds";
}

/** The address of a moment on the page of a call: "#t=12.3". */
export function momentHash(seconds) {
  return `#t=${Math.round(seconds * 10) / 10}`;
}

/** The moment in the address, or null. */
export function momentIn(hash) {
  const found = hash.match(/^#t=(\d+(?:\.\d+)?)$/);
  return found ? Number(found[1]) : null;
}
