// Graphile Worker as it comes: each job is claimed and finished by a statement of its own.

import { main } from "../common.mjs";
import { graphile } from "./graphile.mjs";

await main(graphile((concurrency) => ({ concurrentJobs: concurrency })));
