import { InboxError } from "../../errors.ts";
import type { Answer } from "../../inbox/answers.ts";

// What may be given to whoever repeats the request: nothing that names a session, a connection or an hour.
const keptHeaders = [
  "content-type",
  "content-language",
  "content-location",
  "content-disposition",
  "etag",
  "last-modified",
  "link",
  "location",
];

/**
 * A handler's response as it is kept and given. Throws, so that nothing is committed, for a status
 * that says the request was not done, and for a body over the limit, which a retry could not be given.
 */
export async function answerOf(response: Response, request: string, maxBytes: number): Promise<Answer> {
  const { status } = response;
  if (status < 200 || status > 499) {
    throw new InboxError(
      "handler-failed",
      `A handler answered ${status}, which would be kept for every retry. Throw, and nothing is committed.`,
    );
  }
  const headers: Record<string, string> = {};
  for (const name of keptHeaders) {
    const value = response.headers.get(name);
    if (value !== null) headers[name] = value;
  }
  return { request, status, headers, body: await bodyOf(response, maxBytes) };
}

/** An answer that says nothing but that it is done. */
export const emptyAnswer = (request: string): Answer => ({
  ...{ request, status: 204, headers: {} },
  body: new Uint8Array(),
});

// Responses to which HTTP allows no body.
const bodiless = [204, 205, 304];

export const responseOf = (answer: Answer, more: Readonly<Record<string, string>> = {}): Response =>
  new Response(bodiless.includes(answer.status) ? null : Buffer.from(answer.body), {
    status: answer.status,
    headers: { ...answer.headers, ...more },
  });

async function bodyOf(response: Response, maxBytes: number): Promise<Uint8Array> {
  if (response.body === null) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    size += chunk.byteLength;
    if (size > maxBytes) {
      throw new InboxError(
        "handler-failed",
        `A handler's answer is over ${maxBytes} bytes and could not be kept. Answer less, or raise maxAnswerBytes.`,
      );
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size);
}

/** Whether a handler answered with a Response, of whichever realm or framework. */
export const isResponse = (value: unknown): value is Response =>
  value instanceof Response ||
  (typeof value === "object" &&
    value !== null &&
    "status" in value &&
    "headers" in value &&
    "arrayBuffer" in value &&
    typeof value.arrayBuffer === "function");
