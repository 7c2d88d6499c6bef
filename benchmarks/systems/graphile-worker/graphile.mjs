// Graphile Worker with the settings of one of its two adapters. Finished jobs are deleted.

import { load } from "../common.mjs";

const { Logger, makeWorkerUtils, run } = load("graphile-worker");

const TASK = "handle";
const REMAINING = "select count(*)::int as jobs from graphile_worker._private_jobs";

// Graphile Worker logs a line for each job by default. Only warnings and errors are printed here.
const logger = new Logger(() => (level, message) => {
  if (level === "error" || level === "warning") console.error(message);
});
const connectionString = process.env.DATABASE_URL;
const makeUtils = () => makeWorkerUtils({ connectionString, logger });

class Client {
  constructor(utils) {
    this.utils = utils;
  }

  async add(payload) {
    await this.utils.addJob(TASK, payload);
  }

  async addMany(payloads) {
    await this.utils.addJobs(payloads.map((payload) => ({ identifier: TASK, payload })));
  }

  close() {
    return this.utils.release();
  }
}

/** The system; `settings` gives the worker's preset for a concurrency. */
export const graphile = (settings) => ({
  async setup() {
    const utils = await makeUtils();
    await utils.migrate();
    await utils.release();
  },

  async client() {
    return new Client(await makeUtils());
  },

  async work(worker) {
    const runner = await run({
      preset: { worker: { connectionString, logger, ...settings(worker.concurrency) } },
      noHandleSignals: true,
      parsedCronItems: [],
      taskList: { [TASK]: (payload) => worker.handler(payload) },
    });
    runner.events.once("pool:listen:success", () => worker.ready());
    await worker.stopped();
    await runner.stop();
  },

  async remaining() {
    const utils = await makeUtils();
    const { rows } = await utils.withPgClient((client) => client.query(REMAINING));
    await utils.release();
    return rows[0].jobs;
  },
});
