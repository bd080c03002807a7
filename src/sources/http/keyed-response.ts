import type { RequestMark } from "../../inbox/answers.ts";
import type { Inbox } from "../../inbox/create-inbox.ts";
import type { Message } from "../../message/message.ts";
import { responseOf } from "./answer.ts";
import type { Answered } from "./keep-answer.ts";
import { outcomeResponse } from "./outcome-response.ts";
import { problemResponse } from "./problem.ts";

/** The requests with keys that this process is working on: by identity, what is asked for. */
export type RunningRequests = Map<string, RequestMark>;

/** The answer to a request whose key is in use right now in this process; `undefined` if it is not. */
export function runningResponse(running: RunningRequests, mark: RequestMark): Response | undefined {
  const other = running.get(mark.digest);
  if (other === undefined) return undefined;
  return other.body === mark.body ? inUse() : reused();
}

/** Answers a request with a key. Another body is told before "busy": it would be wrong at any time. */
export async function keyedResponse<Data>(
  inbox: Inbox<Data>,
  message: Message,
  mark: RequestMark,
  requestLine: string,
  { processed, answer }: Answered,
): Promise<Response> {
  const { outcome } = processed;
  if (answer !== undefined) return responseOf(answer);
  if (outcome === "conflict") return reused();
  if (outcome === "busy") return (await inbox.answers.isOtherRunning(mark)) ? reused() : inUse();
  if (outcome !== "duplicate" && outcome !== "stored") return outcomeResponse(processed);
  const kept = await inbox.answers.find(message);
  if (kept === undefined) return outcomeResponse(processed);
  // The same body for another target is another operation.
  if (kept.request !== requestLine) return reused();
  return responseOf(kept, { "idempotent-replayed": "true" });
}

const reused = (): Response =>
  problemResponse({
    ...{
      status: 422,
      code: "idempotency-key-reused",
      title: "The Idempotency-Key was used for another request.",
    },
    detail: "Send a new key with a new request; a key goes only with the very same request.",
  });

const inUse = (): Response =>
  problemResponse({
    ...{
      status: 409,
      code: "idempotency-key-in-use",
      title: "The first request with this key is still running.",
    },
    retryAfterMs: 1_000,
  });
