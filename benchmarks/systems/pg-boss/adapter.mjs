// pg-boss: workers claim a batch, run it, and complete it with one statement.
//
// Its documentation names `batchSize` and `localConcurrency` for throughput, `burstWhenBatchFull` so
// that a full batch is followed by the next at once, `notify` with `useListenNotify` so that an idle
// worker is woken instead of polling, `partition` for a large queue, and `insert` for bulk. Completed
// jobs are kept for seven days, which is the default.

import { load, main } from "../common.mjs";

const { PgBoss } = load("pg-boss");

const QUEUE = "bench";
const BATCH = 1000;
const WORKERS = 2;
const REMAINING =
  "select count(*)::int as jobs from pgboss.job where name = $1 and state < 'completed'";

async function start(options) {
  const boss = new PgBoss({ connectionString: process.env.DATABASE_URL, ...options });
  boss.on("error", (error) => console.error(error));
  return boss.start();
}

const startProducer = () =>
  start({ supervise: false, schedule: false, migrate: false, useListenNotify: true });

/** Two batches that are C jobs together where jobs take time, the largest ones where they do not. */
const limits = ({ kind, concurrency }) => ({
  localConcurrency: WORKERS,
  batchSize: kind === "sleep" ? Math.ceil(concurrency / WORKERS) : BATCH,
});

class Client {
  constructor(boss) {
    this.boss = boss;
  }

  async add(payload) {
    await this.boss.send(QUEUE, payload);
  }

  async addMany(payloads) {
    await this.boss.insert(QUEUE, payloads.map((data) => ({ data })));
  }

  close() {
    return this.boss.stop();
  }
}

await main({
  async setup() {
    const boss = await start();
    await boss.createQueue(QUEUE, { partition: true, notify: true });
    await boss.stop();
  },

  async client() {
    return new Client(await startProducer());
  },

  async work(worker) {
    const boss = await start({ useListenNotify: true });
    const options = { ...limits(worker), burstWhenBatchFull: true };
    await boss.work(QUEUE, options, (jobs) =>
      Promise.all(jobs.map((job) => worker.handler(job.data))),
    );
    worker.ready();
    await worker.stopped();
    await boss.stop();
  },

  async remaining() {
    const boss = await startProducer();
    const { rows } = await boss.getDb().executeSql(REMAINING, [QUEUE]);
    await boss.stop();
    return rows[0].jobs;
  },
});
