// Code that all Node adapters share: the commands, the handlers and the lines they print.

import { realpathSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";

const PROGRESS_MS = 50;
const SLEEP_MS = 20;

/** Monotonic seconds, on the same clock as Python's time.monotonic(). */
export const monotonic = () => Number(process.hrtime.bigint()) / 1e9;

/** A package of the environment that install.py made for the system of this adapter. */
export function load(name) {
  const system = path.dirname(realpathSync(process.argv[1]));
  const environments = path.join(system, "..", "..", ".environments");
  return createRequire(path.join(environments, path.basename(system), "package.json"))(name);
}

const write = (...lines) =>
  process.stdout.write(lines.map((line) => JSON.stringify(line) + "\n").join(""));

/** Counts handled jobs and prints how many there are. */
class Progress {
  count = 0;
  at = 0;
  latencies = [];
  #printed = 0;

  constructor() {
    setInterval(() => this.printNew(), PROGRESS_MS).unref();
  }

  handled() {
    this.at = monotonic();
    this.count += 1;
  }

  printNew() {
    const lines = this.latencies.splice(0).map((latency) => ({ latency }));
    if (this.count !== this.#printed) {
      this.#printed = this.count;
      lines.push({ handled: this.count, at: this.at });
    }
    if (lines.length) write(...lines);
  }
}

/** What a worker is asked to do: how many jobs at once, and which handler. */
class Worker {
  progress = new Progress();

  constructor(concurrency, kind) {
    this.concurrency = concurrency;
    this.kind = kind;
  }

  /** The handler that was asked for; the job counts as handled when it ends. */
  async handler(payload) {
    if (this.kind === "sleep") await sleep(SLEEP_MS);
    else if (this.kind === "stamp") this.progress.latencies.push(monotonic() - payload.at);
    this.progress.handled();
  }

  /** Say that jobs are taken from now on. */
  ready() {
    write({ ready: monotonic() });
  }

  /** Resolves when SIGTERM comes. */
  stopped() {
    return new Promise((resolve) => process.once("SIGTERM", resolve));
  }
}

/** Run a function with a client of the system, and close the client afterwards. */
async function withClient(system, use) {
  const client = await system.client();
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}

const COMMANDS = {
  setup: (system) => system.setup(),

  enqueue: (system, { jobs }) =>
    withClient(system, async (client) => {
      const payloads = Array.from({ length: jobs }, (_, n) => ({ n }));
      const start = monotonic();
      await client.addMany(payloads);
      write({ jobs, seconds: monotonic() - start });
    }),

  "enqueue-single": (system, { jobs }) =>
    withClient(system, async (client) => {
      const latencies = [];
      const start = monotonic();
      for (let n = 0; n < jobs; n++) {
        const before = monotonic();
        await client.add({ n });
        latencies.push(monotonic() - before);
      }
      write({ jobs, seconds: monotonic() - start, latencies });
    }),

  work: async (system, { concurrency, handler }) => {
    const worker = new Worker(concurrency, handler);
    await system.work(worker);
    worker.progress.printNew();
  },

  pickup: (system, { jobs, gap }) =>
    withClient(system, async (client) => {
      for (let n = 0; n < jobs; n++) {
        await sleep((0.5 + Math.random()) * gap * 1000);
        await client.add({ at: monotonic() });
      }
    }),

  remaining: async (system) => write({ remaining: await system.remaining() }),
};

/**
 * Run the command of the command line. A system has setup(), client(), work(worker) and remaining();
 * a client has add(payload), addMany(payloads) and close().
 */
export async function main(system) {
  const string = { type: "string" };
  const options = { jobs: string, concurrency: string, handler: string, gap: string };
  const { positionals, values } = parseArgs({ options, allowPositionals: true });
  await COMMANDS[positionals[0]](system, {
    jobs: Number(values.jobs),
    concurrency: Number(values.concurrency),
    handler: values.handler,
    gap: Number(values.gap),
  });
}
