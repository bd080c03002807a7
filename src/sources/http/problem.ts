/** What went wrong, for the caller: RFC 9457. Texts are ours alone: nothing of a request or an error is in them. */
export interface Problem {
  readonly status: number;
  /** A stable word for programs, such as `signature-invalid`. */
  readonly code: string;
  readonly title: string;
  readonly detail?: string | undefined;
  /** Milliseconds after which to try again. */
  readonly retryAfterMs?: number | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** Raised where a request cannot be taken; caught by the receiver. */
export class Refusal extends Error {
  readonly problem: Problem;
  constructor(problem: Problem) {
    super(problem.title);
    this.problem = problem;
  }
}

export function problemResponse({ status, code, title, detail, retryAfterMs, headers }: Problem): Response {
  const retry = retryAfterMs === undefined ? {} : { "retry-after": String(retryAfterSeconds(retryAfterMs)) };
  return new Response(JSON.stringify({ type: "about:blank", title, status, code, detail }), {
    status,
    headers: {
      "content-type": "application/problem+json",
      "cache-control": "no-store",
      ...retry,
      ...headers,
    },
  });
}

/** Whole seconds, at least one. */
const retryAfterSeconds = (ms: number): number => Math.max(1, Math.ceil(ms / 1_000));
