// BullMQ on Redis: finishing a job and claiming the next is one script call.
//
// Its documentation names the worker's `concurrency` for throughput of asynchronous jobs, `addBulk`
// for bulk (here a thousand at a time), and for durability an append-only file written every second
// and no eviction ("Going to production"). Completed jobs are kept, which is the default.

import { load, main } from "../common.mjs";

const { Queue, Worker } = load("bullmq");
const { Redis } = load("ioredis");

const QUEUE = "bench";
const BULK = 1000;

const connect = () => new Redis(process.env.REDIS_URL, { maxRetriesPerRequest: null });

class Client {
  constructor() {
    this.connection = connect();
    this.queue = new Queue(QUEUE, { connection: this.connection });
  }

  async add(payload) {
    await this.queue.add("job", payload);
  }

  async addMany(payloads) {
    const jobs = payloads.map((data) => ({ name: "job", data }));
    for (let start = 0; start < jobs.length; start += BULK) {
      await this.queue.addBulk(jobs.slice(start, start + BULK));
    }
  }

  async close() {
    await this.queue.close();
    await this.connection.quit();
  }
}

await main({
  async setup() {
    const redis = connect();
    await redis.flushdb();
    await redis.quit();
  },

  async client() {
    const client = new Client();
    await client.queue.waitUntilReady();
    return client;
  },

  async work(worker) {
    const connection = connect();
    const { concurrency } = worker;
    const bull = new Worker(QUEUE, (job) => worker.handler(job.data), { connection, concurrency });
    bull.on("error", (error) => console.error(error));
    await bull.waitUntilReady();
    worker.ready();
    await worker.stopped();
    await bull.close();
    await connection.quit();
  },

  async remaining() {
    const client = new Client();
    const counts = await client.queue.getJobCounts("waiting", "active", "delayed", "paused");
    await client.close();
    return Object.values(counts).reduce((sum, count) => sum + count, 0);
  },
});
