import { receiveMessage } from "../../message/create-message.ts";
import type { RawDelivery } from "../../message/formats/format.ts";
import { headerTexts } from "../../message/formats/header-value.ts";
import { isRejected, type Message } from "../../message/message.ts";
import { Refusal } from "./problem.ts";

/** Who makes a request, from what authenticated it, never from what it says. */
export interface Principal {
  /** Part of the identity. Default `""`. */
  readonly tenant?: string | undefined;
  /** Who chose the key: two principals may use one key. With other identities than `"idempotency-key"` it is not used. */
  readonly producer?: string | undefined;
}

/** The longest key, in characters. */
const maxKeyCharacters = 255;

/**
 * The message of a request with an Idempotency-Key (draft-ietf-httpapi-idempotency-key-header). Throws a Refusal with 400
 * for a key that is missing or is no structured-field string (RFC 9651).
 */
export function keyedMessage(key: string | null, principal: Principal, delivery: RawDelivery): Message {
  if (key === null) {
    throw new Refusal({
      ...{ status: 400, code: "idempotency-key-missing", title: "The header Idempotency-Key is missing." },
      detail:
        "Send a key of your own for each operation, and the same one when you send the operation again.",
    });
  }
  const id = parseString(key);
  if (id === undefined || id === "" || id.length > maxKeyCharacters) {
    throw new Refusal({
      ...{
        status: 400,
        code: "idempotency-key-invalid",
        title: "The header Idempotency-Key cannot be read.",
      },
      detail: `It must be one text in double quotes, of 1 to ${maxKeyCharacters} characters.`,
    });
  }
  const { tenant, producer } = principal;
  const { body: payload } = delivery;
  const received = receiveMessage({ tenant, producer, id, payload, headers: headerTexts(delivery.headers) });
  if (!isRejected(received)) return received;
  // The key is fine by now: what is wrong is the principal that the user's function gave.
  throw new Error(`The principal of a request is no identity: ${received.rejected.code}.`);
}

/** A structured-field string, without parameters. */
function parseString(value: string): string | undefined {
  const match = /^[ ]*"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"[ ]*$/.exec(value.slice(0, 2_000));
  return match?.[1]?.replace(/\\(["\\])/g, "$1");
}
