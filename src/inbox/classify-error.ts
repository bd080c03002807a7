import { causes, codeOf, InboxError, isPermanent } from "../errors.ts";

/**
 * What an error says about trying again. `permanent`: never. `conflict`: at once, another transaction was in the way.
 * `environment`: later, and it is not the message's fault. `failure`: later, and it counts.
 */
export type ErrorClass = "permanent" | "conflict" | "environment" | "failure";

/** A user's own rule; `undefined` leaves the error to ours. */
export type ErrorClassifier = (error: unknown) => ErrorClass | undefined;

/** SQLSTATE, by code or by class (PostgreSQL, appendix A). */
const conflicts = new Set([
  ...["40001", "40P01", "55P03"],
  // A prepared statement that somebody deallocated; the driver parses it anew.
  "26000",
]);
const environments = new Set(["25P03", "25P04", "57P01", "57P02", "57P03", "57P04", "57P05", "3F000"]);
const environmentClasses = new Set(["08", "53", "58"]);
const networkCodes = new Set([
  ...["ECONNREFUSED", "ECONNRESET", "ECONNABORTED", "EPIPE", "ETIMEDOUT", "ENOTFOUND", "EAI_AGAIN"],
  ...["EHOSTUNREACH", "ENETUNREACH", "ENETDOWN"],
  // fetch
  ...["UND_ERR_CONNECT_TIMEOUT", "UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT", "UND_ERR_SOCKET"],
  // postgres.js
  ...["CONNECTION_CLOSED", "CONNECTION_ENDED", "CONNECTION_DESTROYED", "CONNECT_TIMEOUT"],
]);
const storeCodes = new Set([
  ...["connection-lost", "store-unavailable", "commit-unknown", "interrupted"],
  ...["schema-missing", "schema-outdated", "schema-newer"],
]);

/** The inbox's own codes that say so without the database being away. */
const ownEnvironments = new Set(["lease-lost", "payload-key-missing"]);

/** Walks the causes: an ORM's error tells its driver's error as its cause. The outermost that says something decides. */
export function classifyError(error: unknown, classifier?: ErrorClassifier): ErrorClass {
  const own = classifier?.(error);
  if (own !== undefined) return own;
  for (const link of causes(error)) {
    if (isPermanent(link)) return "permanent";
    const code = codeOf(link);
    if (link instanceof InboxError) {
      if (code === "busy") return "conflict";
      if (storeCodes.has(code) || ownEnvironments.has(code)) return "environment";
      if (!link.retryable) return "permanent";
      continue;
    }
    if (conflicts.has(code) || isStalePlan(link, code)) return "conflict";
    if (environments.has(code) || networkCodes.has(code)) return "environment";
    if (code.length === 5 && environmentClasses.has(code.slice(0, 2))) return "environment";
  }
  return "failure";
}

/** A table has changed under a prepared statement; the driver parses it anew. The message is in the server's language. */
const isStalePlan = (link: unknown, code: string): boolean =>
  code === "0A000" && (link as { routine?: unknown }).routine === "RevalidateCachedQuery";

/** Whether the database itself is away, so that no other message would fare better. */
export function isStoreAway(error: unknown): boolean {
  for (const link of causes(error)) {
    const code = codeOf(link);
    if (link instanceof InboxError && storeCodes.has(code) && code !== "interrupted") return true;
    if (/^(57P0[1-5]|08...|53...|58...)$/.test(code)) return true;
  }
  return false;
}

/** An error and its causes in readable form, for people; bounded, and safe with any thrown value. */
export function errorText(error: unknown): string {
  const parts: string[] = [];
  for (const link of causes(error)) {
    try {
      // Our own errors say it all in their message, and their code is told beside it.
      if (link instanceof InboxError) {
        parts.push(link.message);
        continue;
      }
      const code = codeOf(link);
      const text = link instanceof Error ? `${link.name}: ${link.message}` : String(link);
      parts.push(code === "" || text.includes(code) ? text : `${text} (${code})`);
    } catch {
      parts.push("an error that cannot be printed");
    }
  }
  return parts.join("; caused by ");
}

/** What a thrown value looks like as an Error, unchanged if it is one. */
export const asError = (thrown: unknown): Error =>
  thrown instanceof Error ? thrown : new Error(errorText(thrown), { cause: thrown });
