import { createHmac } from "node:crypto";
import { createServer, request, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { httpReceiver, type HttpReceiver, type HttpReceiverOptions } from "../../../src/sources/http/http.ts";
import { toNodeListener } from "../../../src/sources/http/http.ts";
import { testInbox, type TestInbox } from "../../inbox/support.ts";
import { onTestEnd, type Scope } from "../../support/cleanup.ts";

export interface Answered {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface HttpCase extends TestInbox {
  readonly receiver: HttpReceiver;
  readonly port: number;
  readonly send: (request: Sent) => Promise<Answered>;
}

export interface Sent {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  readonly method?: string;
  readonly path?: string;
}

/** Writes one row for each message it is given. */
export const record: HttpReceiverOptions["handler"] = async ({ id }, { tx }) => {
  await tx.query("insert into effect (message_id) values ($1)", [id]);
};

/** An inbox behind a receiver on a server of its own. */
export async function httpCase(
  t: Scope,
  options: Omit<HttpReceiverOptions, "inbox" | "handler"> & Partial<Pick<HttpReceiverOptions, "handler">>,
): Promise<HttpCase> {
  const test = await testInbox(t);
  const receiver = httpReceiver({ handler: record, inbox: test.inbox, ...options });
  const port = await listen(t, createServer(toNodeListener(receiver)));
  return { ...test, receiver, port, send: (sent) => send(port, sent) };
}

/** Serves on a free port of the loopback interface until the test ends. */
export async function listen(t: Scope, server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestEnd(t, () => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  return (server.address() as AddressInfo).port;
}

/** Sends a request on a connection of its own and resolves with the whole answer. */
export function send(
  port: number,
  { headers, body = "", method = "POST", path = "/in" }: Sent,
): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, method, path, headers, agent: false }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on("data", (chunk: Buffer) => chunks.push(chunk));
      answer.on("error", reject);
      answer.on("end", () =>
        resolve({ status: answer.statusCode!, headers: answer.headers, body: Buffer.concat(chunks) }),
      );
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

export const problemIn = ({ body, headers }: Answered): { code: string; status: number; title: string } => {
  if (headers["content-type"] !== "application/problem+json")
    throw new Error(`No problem: ${body.toString()}`);
  return JSON.parse(body.toString()) as { code: string; status: number; title: string };
};

/** A Stripe-Signature for a body at a time in seconds. */
export const stripeSignature = (secret: string, time: number, body: string | Uint8Array): string =>
  `t=${time},v1=${createHmac("sha256", secret).update(`${time}.`).update(body).digest("hex")}`;
