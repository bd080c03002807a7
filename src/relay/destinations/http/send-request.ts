import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest, type RequestOptions } from "node:https";
import { isIP } from "node:net";
import { createIsPrivate, PrivateAddressError, publicLookup } from "./private-address.ts";

export interface OutgoingRequest {
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | null;
  readonly signal: AbortSignal;
  /** Only addresses of the open network. */
  readonly publicOnly: boolean;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The beginning of the body, as text. */
  readonly body: string;
}

/** The request failed. `reached`: the connection stood, so the request may have been taken. */
export class RequestError extends Error {
  override readonly name = "RequestError";
  readonly reached: boolean;

  constructor(message: string, reached: boolean, options: { cause: unknown }) {
    super(message, options);
    this.reached = reached;
  }
}

/** Sends requests over connections that stay open. */
export interface HttpClient {
  send(request: OutgoingRequest): Promise<HttpAnswer>;
  close(): void;
}

export interface HttpClientOptions {
  readonly connections: number;
  /** Certificates and keys for TLS: `ca`, `cert`, `key`, … */
  readonly tls: Pick<RequestOptions, "ca" | "cert" | "key" | "passphrase" | "pfx"> | undefined;
}

const keptBytes = 16_384;

export function httpClient({ connections, tls }: HttpClientOptions): HttpClient {
  const isPrivate = createIsPrivate();
  const settings = { keepAlive: true, maxSockets: connections, scheduling: "fifo" as const };
  const lookup = publicLookup(isPrivate) as never;
  // Connections that were not checked must not serve requests that are to be.
  const agents = {
    any: { "http:": new HttpAgent(settings), "https:": new HttpsAgent({ ...settings, ...tls }) },
    public: {
      "http:": new HttpAgent({ ...settings, lookup }),
      "https:": new HttpsAgent({ ...settings, ...tls, lookup }),
    },
  };

  return {
    send({ url, method, headers, body, signal, publicOnly }) {
      const protocol = url.protocol;
      if (protocol !== "http:" && protocol !== "https:") {
        return Promise.reject(new PrivateAddressError(`${protocol} is neither http nor https.`));
      }
      // No name is looked up for a URL that holds an address.
      const host = url.hostname.replace(/^\[|\]$/g, "");
      if (publicOnly && isIP(host) !== 0 && isPrivate(host)) {
        return Promise.reject(new PrivateAddressError(`${host} is a private address.`));
      }
      return new Promise((resolve, reject) => {
        let reached = false;
        const fail = (error: Error): void => {
          if (error instanceof PrivateAddressError) reject(error);
          else reject(new RequestError(error.message || error.name, reached, { cause: error }));
        };
        const start = protocol === "https:" ? httpsRequest : httpRequest;
        const agent = agents[publicOnly ? "public" : "any"][protocol];
        const request = start(url, { method, headers, agent, signal });
        request.on("socket", (socket) => {
          if (request.reusedSocket) reached = true;
          else socket.once(protocol === "https:" ? "secureConnect" : "connect", () => (reached = true));
        });
        request.on("error", fail);
        request.on("response", (response) => {
          const { statusCode: status = 0, headers: received } = response;
          // The status is the answer; how the body ends changes nothing of it.
          void readBeginning(response).then((text) => resolve({ status, headers: received, body: text }));
        });
        request.end(body ?? undefined);
      });
    },
    close() {
      for (const { "http:": http, "https:": https } of Object.values(agents)) {
        http.destroy();
        https.destroy();
      }
    },
  };
}

function readBeginning(response: IncomingMessage): Promise<string> {
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    let size = 0;
    const end = (): void => resolve(Buffer.concat(parts).subarray(0, keptBytes).toString("utf8"));
    response.on("data", (part: Buffer) => {
      parts.push(part);
      size += part.length;
      if (size <= keptBytes) return;
      // Not worth waiting for; the connection goes with it.
      response.destroy();
    });
    response.on("error", end);
    response.on("close", end);
  });
}
