import type { TestContext } from "node:test";
import type pg from "pg";
import type { LocalPostgres } from "../../src/local-postgres/local-postgres.ts";
import { migrate } from "../../src/store/postgres/migrate.ts";
import type { Scope } from "../support/cleanup.ts";
import { ownServer, testDatabase } from "../support/postgres.ts";
import { account, type Account } from "./account.ts";
import { startConsumer, type Consumer } from "./consumer-process.ts";
import type { Content, Plan } from "./plan.ts";
import type { Needs, Place, Sent, Subject } from "./subject.ts";

/** A message to be sent, without what the stage fills in. */
export interface Draft extends Omit<Content, "id" | "sequence"> {
  /** `null`: it has none. */
  readonly id: string | null;
}

/** What one case plays on: a place at the broker, tables, and consumer processes. */
export interface Stage {
  readonly subject: Subject;
  readonly place: Place;
  readonly pool: pg.Pool;
  /** With `needs.ownServer`. */
  readonly server: LocalPostgres | undefined;
  readonly consumers: readonly Consumer[];
  readonly start: (plan?: Partial<Plan>) => Promise<Consumer>;
  /** Publishes them, with their places among the messages of their keys. */
  readonly publish: (drafts: readonly Draft[]) => Promise<void>;
  /** Publishes again, to the letter, what was published under these ids. */
  readonly publishAgain: (ids: readonly string[]) => Promise<void>;
  /**
   * Resolves when the broker holds nothing, nothing is pending, and as many messages as were sent are applied or in
   * quarantine; rejects after the subject's patience with what is missing, or when a consumer fails.
   */
  readonly settled: () => Promise<void>;
  /** Stops the consumers that are left, then takes stock. */
  readonly close: () => Promise<Account>;
}

const lookEveryMs = 50;
const usualPatienceMs = 30_000;
/** How many of a list an error shows, and then their number. */
const shown = 10;

/** Opens a stage; `undefined` where the subject skipped the test. */
export async function openStage(
  t: TestContext,
  subject: Subject,
  suite: Scope,
  needs: Needs,
): Promise<Stage | undefined> {
  const place = await subject.open(t, needs, suite);
  if (place === undefined) return undefined;
  const server = needs.ownServer ? await ownServer(t) : undefined;
  const { url, schema, pool } = await testDatabase(t, { max: 3, url: server?.url });
  await migrate(pool, { schema });
  // No unique key: an effect that is there twice is to be seen.
  await pool.query(
    `create table progress (key text primary key, applied int not null default 0);
     create table effect (message_id text not null, key text not null, sequence int not null,
                          applied int not null, worker text not null)`,
  );

  const sent = new Map<string, Sent>();
  const sequences = new Map<string, number>();
  const consumers: Consumer[] = [];
  const patienceMs = subject.patienceMs ?? usualPatienceMs;
  let nameless = 0;
  let publications = 0;
  const publication = (): string => `${needs.name}-${++publications}`;

  const look = (): Promise<Account> =>
    account({ pool, place, sent, nameless, consumers, namesByPlace: subject.namesByPlace === true });

  const stage: Stage = {
    subject,
    ...{ place, pool, server, consumers },
    async start(plan = {}) {
      const name = `c${consumers.length + 1}`;
      const { namesByPlace } = subject;
      const whole: Plan = { url, schema, config: place.config, name, form: "tx", namesByPlace, ...plan };
      const consumer = await startConsumer(t, subject.module, whole, patienceMs);
      consumers.push(consumer);
      return consumer;
    },
    async publish(drafts) {
      const messages = drafts.map(({ id, ...draft }): Sent => {
        const sequence = (sequences.get(draft.key) ?? 0) + 1;
        sequences.set(draft.key, sequence);
        const content: Content = { ...(id === null ? {} : { id }), ...draft, sequence };
        return {
          id: id ?? undefined,
          key: draft.key,
          body: JSON.stringify(content),
          publication: publication(),
        };
      });
      await pool.query("insert into progress (key) select unnest($1::text[]) on conflict do nothing", [
        [...sequences.keys()],
      ]);
      for (const message of messages) {
        if (message.id === undefined) nameless++;
        else sent.set(message.id, message);
      }
      await place.publish(messages);
    },
    publishAgain: (ids) => place.publish(ids.map((id) => ({ ...sent.get(id)!, publication: publication() }))),
    async settled() {
      const failures = consumers.map(({ failure }) => failure);
      const deadline = performance.now() + patienceMs;
      for (;;) {
        const seen = await Promise.race([look(), ...failures]);
        if (seen.settled) return;
        if (performance.now() > deadline) {
          const short = JSON.stringify(seen, (_, value: unknown) =>
            Array.isArray(value) && value.length > shown
              ? [...(value as unknown[]).slice(0, shown), value.length]
              : value,
          );
          throw new Error(`Not settled in ${patienceMs} ms: ${short}`, { cause: seen });
        }
        await new Promise((resolve) => setTimeout(resolve, lookEveryMs));
      }
    },
    async close() {
      await Promise.all(consumers.filter((consumer) => !consumer.gone).map((consumer) => consumer.stop()));
      return await look();
    },
  };
  return stage;
}
