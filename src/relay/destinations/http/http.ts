import { InboxError } from "../../../errors.ts";
import { wholeNumber } from "../../../whole-number.ts";
import { again, refused, type Answer } from "../../answer.ts";
import type { DeliveryOptions, Destination } from "../../destination.ts";
import type { Effect } from "../../effect.ts";
import { judgeAnswer } from "./judge-answer.ts";
import { PrivateAddressError } from "./private-address.ts";
import { requestHeaders, signatureHeaders, signingKey } from "./request-headers.ts";
import { httpClient, RequestError, type HttpAnswer, type HttpClientOptions } from "./send-request.ts";

export interface HttpDestinationOptions extends DeliveryOptions {
  /** Where requests go. A function is asked for each effect, and what it gives is not trusted: see `allowPrivateAddresses`. */
  readonly url: string | URL | ((effect: Effect) => string | URL);
  /** Default POST. */
  readonly method?: string | undefined;
  /** Headers of every request, asked for with each if it is a function. They replace the effect's own. */
  readonly headers?:
    | Readonly<Record<string, string>>
    | ((effect: Effect) => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>)
    | undefined;
  /** Secret of Standard Webhooks, `whsec_…`; a list while one takes another's place. Default: requests are not signed. */
  readonly secret?: string | readonly string[] | undefined;
  /** Redirects (307 and 308) that are followed. Default 3. */
  readonly maxRedirects?: number | undefined;
  /**
   * Whether redirects, and URLs that a function gave, may lead to this machine, a private network or a cloud's own
   * services. Default false. A `url` that is no function goes wherever it says.
   */
  readonly allowPrivateAddresses?: boolean | undefined;
  /** Certificates and keys for TLS. */
  readonly tls?: HttpClientOptions["tls"];
  /** Your own reading of an answer, before the built-in one. */
  readonly judge?: ((answer: HttpAnswer, effect: Effect) => Answer | undefined) | undefined;
  /** Milliseconds since 1970, for signatures and dates in `Retry-After`. Default `Date.now`. */
  readonly now?: (() => number) | undefined;
}

/**
 * Sends effects by HTTP, one request each, over connections that stay open. Every attempt has the effect's id as
 * `Idempotency-Key`, as `ce-id` and, where it is signed, as `webhook-id`. 2xx is a confirmation. Throws `invalid-option`.
 */
export function httpDestination(options: HttpDestinationOptions): Destination {
  const {
    url,
    method = "POST",
    headers = {},
    judge,
    now = Date.now,
    allowPrivateAddresses = false,
  } = options;
  const fixedUrl = typeof url === "function" ? undefined : readUrl(url);
  const secrets = options.secret === undefined ? [] : [options.secret].flat();
  const keys = secrets.map(signingKey);
  const maxRedirects = wholeNumber("maxRedirects", options.maxRedirects, 3, 0, 20);
  const connections = wholeNumber("concurrency", options.concurrency, 16, 1, 1_000);
  let client = httpClient({ connections, tls: options.tls });

  async function send(effect: Effect, signal: AbortSignal): Promise<HttpAnswer> {
    const own = typeof headers === "function" ? await headers(effect) : headers;
    const signature = keys.length === 0 ? {} : signatureHeaders(effect, keys, now());
    let target = fixedUrl ?? readUrl((url as (effect: Effect) => string | URL)(effect));
    let publicOnly = fixedUrl === undefined && !allowPrivateAddresses;
    let sentHeaders = { ...requestHeaders(effect, own), ...signature };
    for (let redirects = 0; ; redirects++) {
      const answer = await client.send({
        ...{ url: target, method, headers: sentHeaders, body: effect.payload, signal, publicOnly },
      });
      const { location } = answer.headers;
      const moved = answer.status === 307 || answer.status === 308;
      if (!moved || typeof location !== "string" || redirects >= maxRedirects) return answer;
      if (!URL.canParse(location, target.href)) return answer;
      const next = new URL(location, target);
      if (target.protocol === "https:" && next.protocol !== "https:") return answer;
      publicOnly = !allowPrivateAddresses;
      // What the options add is for the host they name: credentials, mostly.
      if (next.origin !== target.origin) {
        sentHeaders = { ...requestHeaders(effect, {}), ...signature };
        delete sentHeaders["authorization"];
        delete sentHeaders["cookie"];
      }
      target = next;
    }
  }

  return {
    ...options,
    concurrency: connections,
    async deliver(effect, { signal }) {
      try {
        const answer = await send(effect, signal);
        return judge?.(answer, effect) ?? judgeAnswer(answer, now());
      } catch (error) {
        const cannotBeSent = error instanceof PrivateAddressError || error instanceof InboxError;
        if (cannotBeSent) return refused(error);
        if (error instanceof RequestError) {
          return again(error, { fault: "destination", ambiguous: error.reached });
        }
        throw error;
      }
    },
    close() {
      client.close();
      client = httpClient({ connections, tls: options.tls });
      return Promise.resolve();
    },
  };
}

function readUrl(given: string | URL): URL {
  const url = URL.canParse(String(given)) ? new URL(given) : undefined;
  if (url !== undefined && (url.protocol === "http:" || url.protocol === "https:")) return url;
  // Not the URL itself: it may hold a password.
  throw new InboxError("invalid-option", "url must be an http or https URL.");
}
