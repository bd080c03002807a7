import { again, refused, sent, type Answer } from "../../answer.ts";
import type { HttpAnswer } from "./send-request.ts";

const longestPauseMs = 86_400_000;
/** Conflict (still at work on it), locked, timeouts, too early: the same may be taken later. */
const later = new Set([408, 409, 421, 423, 425]);
/** Credentials are the destination's matter: nothing that is sent with the wrong ones is at fault. */
const credentials = new Set([401, 403, 407]);

/** What an HTTP status says of an effect. `nowMs`: for a Retry-After that is a date. */
export function judgeAnswer({ status, headers, body }: HttpAnswer, nowMs: number): Answer {
  if (status >= 200 && status < 300) return sent(body === "" ? undefined : body, status);
  const error = new Error(`HTTP ${status}${body === "" ? "" : `: ${body.slice(0, 500)}`}`);
  if (status === 429 || status === 503) {
    return again(error, {
      status,
      fault: "destination",
      pauseMs: retryAfterMs(headers["retry-after"], nowMs),
    });
  }
  if (credentials.has(status)) return again(error, { status, fault: "destination" });
  if (status === 502 || status === 504)
    return again(error, { status, fault: "destination", ambiguous: true });
  if (status < 400 || status >= 500 || later.has(status)) return again(error, { status });
  return refused(error, status);
}

/** Seconds, or a date. */
function retryAfterMs(value: string | string[] | undefined, nowMs: number): number | undefined {
  if (typeof value !== "string") return undefined;
  const ms = /^\s*\d+\s*$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - nowMs;
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), longestPauseMs);
}
