import { Refusal } from "./problem.ts";

export interface BodyLimits {
  readonly maxBodyBytes: number;
  /** How long the whole body may take, in milliseconds. */
  readonly bodyTimeoutMs: number;
}

/**
 * The request's body, byte for byte. The limit holds while reading, whatever Content-Length says. Throws a Refusal: 413
 * over the limit, 408 out of time, 415 encoded, 400 if the sender went away.
 */
export async function readBody(request: Request, limits: BodyLimits): Promise<Uint8Array> {
  const encoding = request.headers.get("content-encoding");
  if (encoding !== null && encoding.toLowerCase() !== "identity") {
    // A signature is over the bytes as they were sent, and what is unpacked has no limit of its own.
    throw new Refusal({
      ...{ status: 415, code: "encoding-not-supported", title: "The body must not be encoded." },
      headers: { "accept-encoding": "identity" },
    });
  }
  if (Number(request.headers.get("content-length") ?? 0) > limits.maxBodyBytes) throw tooLarge(limits);
  if (request.bodyUsed) throw new Error("The body was read before the receiver saw it: see docs/http.md.");
  if (request.body === null) return new Uint8Array();

  const reader = request.body.getReader() as ReadableStreamDefaultReader<Uint8Array>;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () =>
        reject(
          new Refusal({ status: 408, code: "body-too-slow", title: "The body did not arrive in time." }),
        ),
      limits.bodyTimeoutMs,
    );
  });
  try {
    const chunks: Uint8Array[] = [];
    let size = 0;
    for (;;) {
      const { done, value } = await Promise.race([reader.read(), late]);
      if (done) return Buffer.concat(chunks, size);
      size += value.byteLength;
      if (size > limits.maxBodyBytes) throw tooLarge(limits);
      chunks.push(value);
    }
  } catch (error) {
    if (error instanceof Refusal) throw error;
    throw new Refusal({ status: 400, code: "body-incomplete", title: "The body ended before it was whole." });
  } finally {
    clearTimeout(timer);
    // Not cancelled: over node:http that would take the connection away before the answer is written.
    reader.releaseLock();
  }
}

const tooLarge = ({ maxBodyBytes }: BodyLimits): Refusal =>
  new Refusal({
    ...{ status: 413, code: "body-too-large", title: "The body is too large." },
    detail: `The limit is ${maxBodyBytes} bytes.`,
  });
