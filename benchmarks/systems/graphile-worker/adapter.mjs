// Graphile Worker with its default settings: one statement claims a job, and one finishes it.

import { main } from "../common.mjs";
import { graphile } from "./graphile.mjs";

await main(graphile((concurrency) => ({ concurrentJobs: concurrency })));
