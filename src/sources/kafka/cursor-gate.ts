/**
 * Holds back what was read until a question that was asked after it has been answered: is this still the topic that is read?
 * A topic that is made anew keeps its name, and a client that reads on from its place may not see the difference.
 */
export interface CursorGate {
  /** Runs `work` behind everything given before, once these topics are known to be the same; never, once one is not. */
  pass(topics: Iterable<string>, work: () => Promise<void> | void): Promise<void>;
  /** Lets nothing through any more. */
  stop(): void;
}

interface Waiting {
  readonly topics: Iterable<string>;
  readonly work: () => Promise<void> | void;
  readonly done: (result: Promise<void> | void) => void;
}

/** `isSame` resolves with whether a topic is the one that is read; it waits for a broker that does not answer. */
export function createCursorGate(isSame: (topic: string) => Promise<boolean>): CursorGate {
  let waiting: Waiting[] = [];
  let running = false;
  let stopped = false;

  /** One question answers for all that was read before it was asked. */
  async function run(): Promise<void> {
    running = true;
    while (waiting.length > 0) {
      const list = waiting;
      waiting = [];
      const topics = new Set(list.flatMap((one) => [...one.topics]));
      for (const topic of topics) if (!stopped && !(await isSame(topic))) stopped = true;
      for (const { work, done } of list) done(stopped ? undefined : work());
    }
    running = false;
  }

  return {
    pass(topics, work) {
      if (stopped) return Promise.resolve();
      const passed = new Promise<void>((done) => waiting.push({ topics, work, done }));
      if (!running) void run();
      return passed;
    },
    stop() {
      stopped = true;
    },
  };
}
