import { measureAsking, type AskingJob } from "./asking.ts";

// One process: messages through a run, with and without effects.

const job = JSON.parse(process.argv[2] ?? "{}") as AskingJob;
process.stdout.write(JSON.stringify(await measureAsking(job)));
process.exit(0);
