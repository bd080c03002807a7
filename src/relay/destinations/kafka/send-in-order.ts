import type { KafkaProducer, KafkaRecord, SendFailure } from "./producer.ts";

/** A record and the key of its effect. */
export interface Outgoing {
  readonly record: KafkaRecord;
  readonly key: string | undefined;
}

export type SendResult = "sent" | "not-tried" | SendFailure;

/**
 * Sends records so that none arrives before an earlier one of its key, in whatever topics they are; those of other keys go
 * their way whatever becomes of one. What the broker finds too large is sent again in halves, until it is known which
 * record it is. Answers by position.
 */
export async function sendInOrder(
  producer: KafkaProducer,
  all: readonly Outgoing[],
  maxRequestBytes: number,
): Promise<readonly SendResult[]> {
  const results = new Map<Outgoing, SendResult>();
  const stuck = new Set<string>();
  const free = (one: Outgoing): boolean => one.key === undefined || !stuck.has(one.key);

  function settle(one: Outgoing, failure: SendFailure | undefined): void {
    results.set(one, failure === undefined ? "sent" : failure.kind === "behind" ? "not-tried" : failure);
    if (failure !== undefined && one.key !== undefined) stuck.add(one.key);
  }

  async function send(given: readonly Outgoing[]): Promise<void> {
    const list = given.filter(free);
    if (list.length === 0) return;
    const failures = await producer.send(list.map(({ record }) => record));
    const tooLarge = list.filter((_, i) => failures[i]?.kind === "too-large");
    const together = tooLarge.length > 1;
    for (const [i, one] of list.entries()) {
      if (together && failures[i]?.kind === "too-large") continue;
      settle(one, failures[i]);
    }
    if (!together) return;
    const half = Math.ceil(tooLarge.length / 2);
    await send(tooLarge.slice(0, half));
    await send(tooLarge.slice(half));
  }

  async function sendTopic(list: readonly Outgoing[]): Promise<void> {
    for (const request of requestsOf(list, maxRequestBytes)) await send(request);
  }

  for (const wave of wavesOf(all)) {
    const byTopic = groupByTopic(wave);
    await Promise.all([...byTopic.values()].map(sendTopic));
  }
  return all.map((one) => results.get(one) ?? "not-tried");
}

const topicOf = ({ record }: Outgoing): string => record.topic;

function groupByTopic(list: readonly Outgoing[]): Map<string, Outgoing[]> {
  const groups = new Map<string, Outgoing[]>();
  for (const one of list) {
    const group = groups.get(topicOf(one));
    if (group === undefined) groups.set(topicOf(one), [one]);
    else group.push(one);
  }
  return groups;
}

/** A key whose records change from one topic to another waits for the first ones' confirmation. */
function wavesOf(all: readonly Outgoing[]): readonly (readonly Outgoing[])[] {
  const waves: Outgoing[][] = [];
  const last = new Map<string, { topic: string; wave: number }>();
  for (const one of all) {
    const { key, record } = one;
    const before = key === undefined ? undefined : last.get(key);
    const wave = before === undefined ? 0 : before.wave + (before.topic === record.topic ? 0 : 1);
    if (key !== undefined) last.set(key, { topic: record.topic, wave });
    (waves[wave] ??= []).push(one);
  }
  return waves;
}

/** The broker's limit is on a batch of records of one partition; how they are spread is the client's to say. */
function requestsOf(list: readonly Outgoing[], maxBytes: number): readonly (readonly Outgoing[])[] {
  const requests: Outgoing[][] = [];
  let bytes = 0;
  for (const one of list) {
    const current = requests.at(-1);
    if (current === undefined || bytes + one.record.bytes > maxBytes) {
      requests.push([one]);
      bytes = one.record.bytes;
    } else {
      current.push(one);
      bytes += one.record.bytes;
    }
  }
  return requests;
}
