// What the reference broker and its clients say to each other, one JSON value a line.

/** A message as it is published. */
export interface Published {
  readonly id: string | undefined;
  readonly key: string;
  readonly body: string;
}

export interface Handed extends Published {
  readonly tag: number;
  readonly redelivered: boolean;
}

export interface Settled {
  readonly tag: number;
  readonly kind: "ack" | "retry" | "release";
  readonly afterMs: number;
}

export type ToBroker =
  | { readonly ask: number; readonly publish: readonly Published[] }
  | { readonly ask: number; readonly settle: readonly Settled[] }
  | { readonly ask: number; readonly counts: true }
  | { readonly extend: readonly number[] }
  | { readonly consume: { readonly prefetch: number } };

export interface Counts {
  /** Waiting, delayed, or handed over and not settled. */
  readonly unsettled: number;
  /** Settlements of what the connection did not hold. */
  readonly refused: number;
}

export type FromBroker =
  { readonly answer: number; readonly counts: Counts } | { readonly deliveries: readonly Handed[] };

/** Calls `line` for each whole line of what comes in. */
export function eachLine(line: (value: unknown) => void): (chunk: string) => void {
  let rest = "";
  return (chunk) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop()!;
    for (const text of lines) line(JSON.parse(text));
  };
}
