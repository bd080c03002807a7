import { InboxError } from "../../errors.ts";
import { showValue } from "../../message/show-value.ts";
import { schemes, type SchemeName, type SignedRequest } from "./signature-schemes.ts";

/** A signature scheme by name. */
export interface SchemeOptions {
  readonly scheme: SchemeName;
  /** The secret as the vendor shows it; several while one takes another's place. */
  readonly secret: string | readonly string[];
  /**
   * How far the signed time may be from this machine's, in milliseconds. Default 300,000. Where nothing signs a time
   * (GitHub, Shopify) it has no meaning.
   */
  readonly toleranceMs?: number | undefined;
}

/**
 * How a request proves its sender: a scheme, or a function of yours, which sees the raw body and answers whether it is
 * genuine. `false`: something in front of the receiver has verified it.
 */
export type VerifyOption = SchemeOptions | ((request: SignedRequest) => boolean | Promise<boolean>) | false;

export type Verify = (request: SignedRequest) => boolean | Promise<boolean>;

/**
 * Makes a `verify` of a vendor's own check that throws for what is not genuine: whatever it throws means no. Give it only
 * the check: an error of your own in it, such as a missing secret, means no as well.
 */
export const verifiedBy =
  (check: (request: SignedRequest) => unknown): ((request: SignedRequest) => Promise<boolean>) =>
  async (request) => {
    try {
      await check(request);
      return true;
    } catch {
      return false;
    }
  };

/** Makes the verifier. Throws `invalid-option`, never naming a secret. `now`: milliseconds since 1970. */
export function createVerify(option: VerifyOption | undefined, now: () => number): Verify | undefined {
  if (option === undefined || option === false) return undefined;
  if (typeof option === "function") return option;
  const { scheme: name, secret, toleranceMs = 300_000 } = option;
  if (!Object.hasOwn(schemes, name)) {
    throw new InboxError(
      "invalid-option",
      `verify.scheme must be one of ${Object.keys(schemes).join(", ")}, not ${showValue(name)}.`,
    );
  }
  if (!Number.isFinite(toleranceMs) || toleranceMs < 0) {
    throw new InboxError("invalid-option", "verify.toleranceMs must be a number of milliseconds, 0 or more.");
  }
  const scheme = schemes[name];
  const secrets = typeof secret === "string" ? [secret] : secret;
  const keys = Array.isArray(secrets)
    ? secrets.map((one: unknown) => (typeof one === "string" && one !== "" ? scheme.key(one) : undefined))
    : [];
  if (keys.length === 0 || keys.some((key) => key === undefined)) {
    throw new InboxError(
      "invalid-option",
      `verify.secret must be one or several secrets as ${name} writes them${name === "standard-webhooks" ? " (whsec_ and base64)" : ""}.`,
    );
  }
  const settings = { keys: keys as Buffer[], toleranceMs, now };
  return (request) => scheme.verify(request, settings);
}
