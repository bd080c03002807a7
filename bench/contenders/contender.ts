/** One way to do the same work, measured for a time. */
export interface Contender {
  readonly name: string;
  /** Works for about `ms` milliseconds and tells how many messages took effect, in what time. */
  run(options: RunOptions): Promise<Measured>;
}

export interface RunOptions {
  readonly url: string;
  readonly accounts: number;
  readonly ms: number;
  readonly seed: number;
}

export interface Measured {
  readonly messages: number;
  readonly ms: number;
  /** Milliseconds from hand-over to acknowledgement, for a sample of the messages. */
  readonly latencies: readonly number[];
}
