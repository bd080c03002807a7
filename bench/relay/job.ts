/** What one process with a relay is to do: send so many effects that are there already. */
export interface RelayJob {
  readonly url: string;
  readonly schema: string;
  readonly kind: "function" | "batch" | "inbox" | "http" | "kafka";
  readonly effects: number;
  /** The schema of the receiving inbox, the address of the HTTP server, or the broker's. */
  readonly target: string;
  readonly topic?: string | undefined;
}

/** What it prints. */
export interface RelayTimes {
  readonly ms: number;
  /** Processor time of the relay's process, in milliseconds. */
  readonly relayMs: number;
  /** Processor time of the database's server. */
  readonly databaseMs: number;
}

/** The name that the effects of the bench are sent to. */
export const destination = "there";

export const jobFrom = (argv: readonly string[]): RelayJob => JSON.parse(argv[2] ?? "{}") as RelayJob;
