// Graphile Worker with the settings of its "Performance" page: a local queue of 500 jobs, claimed
// together, completions and failures batched, and a pool of 25.

import { main } from "../common.mjs";
import { graphile } from "../graphile-worker/graphile.mjs";

await main(
  graphile((concurrency) => ({
    concurrentJobs: concurrency,
    maxPoolSize: 25,
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  })),
);
