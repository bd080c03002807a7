import type { Processed } from "../../inbox/outcome.ts";
import { codeOf } from "../../errors.ts";
import { problemResponse } from "./problem.ts";

// What is wrong is not in the message or the handler, and is expected to pass.
const passing = ["store-unavailable", "connection-lost", "commit-unknown", "interrupted", "handler-deferred"];

/**
 * The answer where nothing better is known. What is settled is a success, so that the sender stops: 204 for what is
 * applied, now or before; 202 for what waits in quarantine, taken and not acted on. What is not settled is 500 or 503,
 * so that the sender comes again.
 */
export function outcomeResponse({ outcome, settle, retryAfterMs, error }: Processed): Response {
  if (settle === "ack") {
    const applied = outcome === "applied" || outcome === "duplicate" || outcome === "superseded";
    return new Response(null, { status: applied ? 204 : 202 });
  }
  if (outcome === "busy" || passing.includes(codeOf(error))) {
    const title = "The message cannot be handled now.";
    return problemResponse({ status: 503, code: "try-again", title, retryAfterMs: retryAfterMs ?? 1_000 });
  }
  const title = "The message could not be handled.";
  return problemResponse({ status: 500, code: "handler-failed", title, retryAfterMs: retryAfterMs ?? 1_000 });
}

/** One answer for all messages of a request: the one that most needs the sender to do something. */
export function combinedResponse(all: readonly Processed[]): Response {
  const again = all.filter(({ settle }) => settle === "retry");
  if (again.length === 0) {
    const kept = all.find(({ outcome }) => !["applied", "duplicate", "superseded"].includes(outcome));
    return outcomeResponse(kept ?? all[0]!);
  }
  const retryAfterMs = Math.max(...again.map((one) => one.retryAfterMs ?? 0));
  const title = "Not every message of the request could be handled.";
  return problemResponse({ status: 503, code: "try-again", title, retryAfterMs });
}
