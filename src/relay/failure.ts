import { causes, codeOf, isPermanent } from "../errors.ts";
import { again, isAnswer, refused, type Answer } from "./answer.ts";

/** Nothing has left this machine, or nobody was there to take it. */
const neverArrived = new Set([
  ...["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "EHOSTDOWN", "EADDRNOTAVAIL"],
  ...["UND_ERR_CONNECT_TIMEOUT", "CERT_HAS_EXPIRED", "DEPTH_ZERO_SELF_SIGNED_CERT"],
  ...["SELF_SIGNED_CERT_IN_CHAIN", "UNABLE_TO_VERIFY_LEAF_SIGNATURE", "ERR_TLS_CERT_ALTNAME_INVALID"],
  ...["UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "ERR_SSL_WRONG_VERSION_NUMBER"],
]);

/** It may have arrived, and the answer did not. */
const unclear = new Set([
  ...["ECONNRESET", "EPIPE", "ETIMEDOUT", "ESOCKETTIMEDOUT", "ECONNABORTED"],
  ...["UND_ERR_SOCKET", "UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT", "UND_ERR_ABORTED", "ABORT_ERR"],
]);

/**
 * What a destination that threw says. A PermanentError refuses for good. Errors of the network are the destination's
 * fault, and ambiguous unless nothing can have arrived. Anything else is taken for the effect's own fault.
 */
export function answerOfError(thrown: unknown): Answer {
  if (isAnswer(thrown)) return thrown;
  if (isPermanent(thrown)) return refused(thrown);
  for (const link of causes(thrown)) {
    const code = codeOf(link);
    if (neverArrived.has(code)) return again(thrown, { fault: "destination" });
    const name = link instanceof Error ? link.name : "";
    if (unclear.has(code) || name === "AbortError" || name === "TimeoutError") {
      return again(thrown, { fault: "destination", ambiguous: true });
    }
  }
  return again(thrown);
}
