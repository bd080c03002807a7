import { InboxError } from "../../errors.ts";
import type { EffectLease, OutboxStore, TakenEffect, TakenEffects, Verdict } from "../outbox.ts";
import { errorShape } from "../error-shape.ts";
import { sealedOverhead, type Protection } from "../protection.ts";
import { nullableTextArray, numberArray, textArray } from "./array.ts";
import type { DriverConnection } from "./driver.ts";
import { sendEffects } from "./outbox-send.ts";
import { takenEffect, type TakenEffectRow } from "./outbox-taken.ts";
import { safeText } from "./safe-text.ts";
import type { OutboxSql } from "./sql/outbox.ts";

type WithConnection = <T>(use: (connection: DriverConnection) => Promise<T>) => Promise<T>;

const errorLimit = 16_384;
const resultLimit = 4_096;

/** The outbox in PostgreSQL. `recordRefusals`: the statement that keeps the history of effects that are set aside. */
export function outboxStore(
  sql: OutboxSql,
  recordRefusals: string,
  protection: Protection,
  withConnection: WithConnection,
): OutboxStore {
  return {
    send: (tx, effects) => sendEffects(tx, sql, protection, effects),

    openLanes: (destinations) =>
      withConnection(
        async (connection) => void (await connection.query(sql.openEffectLanes, [textArray(destinations)])),
      ),

    waiting: (destinations, fromMarks = false) =>
      withConnection(async (connection) => {
        const { rows } = await connection.query<{ name: string }>(sql.waitingDestinations, [
          textArray(destinations),
          fromMarks,
        ]);
        return rows.map(({ name }) => name);
      }),

    async take(destination, request): Promise<TakenEffects> {
      const { relayId, leaseMs, maxLanes, maxEffects, maxBytes } = request;
      const rows = await inTransaction(withConnection, (connection) =>
        connection.query<TakenEffectRow>(sql.takeEffects, [
          ...[destination, relayId, leaseMs, maxLanes, maxEffects, String(maxBytes)],
        ]),
      );
      const effects = await Promise.all(
        rows.flatMap((row) =>
          row.digest === null ? [] : [takenEffect(protection, destination, { ...row, digest: row.digest })],
        ),
      );
      effects.sort(inOrder);
      return { effects, more: rows.some((row) => row.digest === null) };
    },

    async settle(destination, relayId, verdicts, done) {
      const refusals = refusalValues(destination, verdicts);
      const rows = await inTransaction(withConnection, (connection) => {
        const answer = connection.query<{ gone: string | null }>(sql.settleEffects, [
          ...[destination, relayId, ...leaseArrays(done), ...leaseArrays(verdicts.map(({ lease }) => lease))],
          numberArray(verdicts.map(({ position }) => position)),
          textArray(verdicts.map(({ action }) => action)),
          textArray(verdicts.map(({ outcome }) => outcome)),
          numberArray(verdicts.map(({ delayMs }) => Math.round(delayMs))),
          `{${verdicts.map(({ counts }) => String(counts)).join(",")}}`,
          nullableTextArray(verdicts.map(({ code }) => code)),
          nullableTextArray(verdicts.map(({ error }) => shortened(error, errorLimit))),
          nullableNumbers(verdicts.map(({ status }) => status)),
          nullableTextArray(verdicts.map(({ result }) => shortened(result, resultLimit))),
          nullableNumbers(verdicts.map(({ tookMs }) => tookMs)),
        ]);
        // If it fails, the transaction does: COMMIT is answered with ROLLBACK.
        if (refusals !== undefined) connection.query(recordRefusals, refusals).catch(() => undefined);
        return answer;
      });
      const gone = rows[0]?.gone ?? null;
      return gone === null ? [] : (JSON.parse(gone) as string[]);
    },

    renew: (destination, leases, leaseMs) =>
      withConnection(async (connection) => {
        const { rows } = await connection.query<EffectLease>(sql.renewEffectLeases, [
          ...[destination, ...leaseArrays(leases), leaseMs],
        ]);
        return rows.map(({ lane, token }) => ({ lane: Number(lane), token }));
      }),
  };
}

/** Places are numbers in digits, longer ones higher. */
const inOrder = ({ position: a }: TakenEffect, { position: b }: TakenEffect): number =>
  a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);

// Whatever the server's default is: what is read after a lock must be what is committed by then.
const begin = "begin isolation level read committed";

/** One statement and its COMMIT, sent together. Resolves only if it is committed. */
async function inTransaction<Row>(
  withConnection: WithConnection,
  send: (connection: DriverConnection) => Promise<{ readonly rows: Row[] }>,
): Promise<readonly Row[]> {
  return withConnection(async (connection) => {
    void connection.query(begin);
    const answer = send(connection);
    answer.catch(() => undefined);
    const committed = connection.query("commit");
    committed.catch(() => undefined);
    const { rows } = await answer;
    const { command } = await committed;
    if (command !== "COMMIT") throw new InboxError("commit-refused", "The outbox was not written.");
    return rows;
  });
}

/** The parameters of `recordRefusals`; `undefined` where nothing is set aside. */
function refusalValues(
  destination: string,
  verdicts: readonly Verdict[],
): readonly (string | number)[] | undefined {
  const refused = verdicts.filter(({ action }) => action === "quarantined" || action === "aside");
  if (refused.length === 0) return undefined;
  const shapes = refused.map(({ code, error }) =>
    errorShape(code ?? "", shortened(error ?? "", errorLimit) ?? ""),
  );
  return [
    destination,
    numberArray(refused.map(({ position }) => position)),
    textArray(shapes.map(({ group }) => group)),
    textArray(shapes.map(({ shape }) => shape)),
    sealedOverhead,
  ];
}

const leaseArrays = (leases: readonly EffectLease[]): readonly [string, string] => [
  numberArray(leases.map(({ lane }) => lane)),
  numberArray(leases.map(({ token }) => token)),
];

const nullableNumbers = (values: readonly (number | undefined)[]): string =>
  `{${values.map((value) => (value === undefined ? "NULL" : Math.round(value))).join(",")}}`;

const shortened = (text: string | undefined, limit: number): string | undefined =>
  text === undefined ? undefined : safeText(text, limit);
