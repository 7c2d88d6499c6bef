// The pools, live: what each processor does, and how long runs wait and take.

import { choices } from "/components/actions.js";
import { showConnection } from "/components/connection.js";
import { $ } from "/components/elements.js";
import { call } from "/components/http.js";
import { Pool } from "./pool.js";
import { openSession } from "./sessions.js";
import { Statistics } from "./statistics.js";

const EVERY_MS = 2_000;
const WINDOWS = [["15", "15 min"], ["60", "1 hour"], ["1440", "1 day"]];

const pools = new Map();
const statistics = new Statistics($("numbers"));
let minutes = "60";
let timer = null;
let isReading = false;

async function read() {
  if (isReading) return;
  clearTimeout(timer);
  isReading = true;
  try {
    const [{ pools: found }, numbers] = await Promise.all([call("/api/pools"), call(`/api/statistics?minutes=${minutes}`)]);
    show(found, numbers);
    $("problem").textContent = "";
    showConnection($("connection"), document.hidden ? "paused" : "live");
  } catch (error) {
    if (error.status === 401) return start();
    showConnection($("connection"), "reconnecting");
    if (error.isFinal) $("problem").textContent = error.message;
  } finally {
    isReading = false;
  }
  if (!document.hidden) timer = setTimeout(read, EVERY_MS);
}

function show(found, numbers) {
  $("loading").hidden = true;
  $("statistics").hidden = false;
  const known = new Map(numbers.phases.map((each) => [each.phase, each]));
  for (const each of found) {
    if (!pools.has(each.phase)) {
      pools.set(each.phase, new Pool());
      $("pools").append(pools.get(each.phase).element);
    }
    pools.get(each.phase).show(each, known.get(each.phase), numbers.at);
  }
  statistics.show(numbers);
}

document.addEventListener("visibilitychange", () => {
  clearTimeout(timer);
  if (document.hidden) showConnection($("connection"), "paused"); else read();
});

choices($("windows"), WINDOWS, (value) => {
  minutes = value;
  read();
})(minutes);

async function start() {
  showConnection($("connection"), "connecting");
  await openSession();
  await read();
}

start();
