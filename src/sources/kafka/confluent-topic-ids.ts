import type { ConfluentConfig } from "./confluent.ts";
import { call, type ConfluentAdmin, type ConfluentModule, type ConfluentTopic } from "./confluent-shapes.ts";

/**
 * Asks for topics' ids, with a client of its own: one that the package makes from the consumer has a copy of the consumer's
 * lock, and waits for it for ever, on Node's own thread, where it was copied while records were waited for.
 */
export interface ConfluentTopicIds {
  /** `undefined`: the package, or the broker, tells none. */
  ask(topic: string): Promise<string | undefined>;
  close(): void;
}

const requestTimeoutMs = 5_000;
// What says how a broker is reached; the rest of the configuration is a consumer's.
const connecting =
  /^(bootstrap\.|metadata\.broker|client\.|socket\.|broker\.|reconnect\.|security\.|ssl|sasl|oauthbearer|enable\.(sasl|ssl)|https\.)/;

export function createConfluentTopicIds(module: ConfluentModule, config: ConfluentConfig): ConfluentTopicIds {
  let admin: ConfluentAdmin | undefined;

  function connected(): ConfluentAdmin | undefined {
    const settings = Object.fromEntries(Object.entries(config).filter(([name]) => connecting.test(name)));
    const admins = module.AdminClient as { create?(config: object): ConfluentAdmin } | undefined;
    return (admin ??= admins?.create?.(settings));
  }

  return {
    async ask(topic) {
      const asked = connected();
      if (asked === undefined) return undefined;
      const [found] = await call<readonly ConfluentTopic[]>((done) =>
        asked.describeTopics([topic], { timeout: requestTimeoutMs }, done),
      );
      if (found?.error !== undefined)
        throw new Error(`The broker tells no id of ${topic}: ${found.error.message ?? "unknown error"}`);
      return found?.topicId?.base64 ?? found?.topicId?.base64str;
    },
    close() {
      admin?.disconnect();
      admin = undefined;
    },
  };
}
