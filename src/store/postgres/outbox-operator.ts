import type { OutboxOperatorStore } from "../outbox-operator.ts";
import type { Protection } from "../protection.ts";
import { nullableTextArray, numberArray, textArray } from "./array.ts";
import { listDecisions, unfinishedDecisions } from "./decisions.ts";
import type { DriverConnection } from "./driver.ts";
import { carryOnEffects, decideOnEffect, decideOnEffects, repairOneEffect } from "./outbox-decide.ts";
import {
  effectFacts,
  groupRefused,
  listRefused,
  listWaiting,
  outboxStatus,
  refusedValues,
  showRefused,
} from "./outbox-read.ts";
import { forgetting } from "./outbox-forget.ts";
import { bodyOwner } from "./outbox-send.ts";
import { safeText } from "./safe-text.ts";
import type { OutboxForgetSql } from "./sql/outbox-forget.ts";
import type { OutboxOperatorSql } from "./sql/outbox-operator.ts";
import type { OutboxStatusSql } from "./sql/outbox-status.ts";

type WithConnection = <T>(use: (connection: DriverConnection) => Promise<T>) => Promise<T>;

/** What operators ask of the outbox, in PostgreSQL. */
export function outboxOperatorStore(
  sql: OutboxOperatorSql & OutboxStatusSql & OutboxForgetSql,
  protection: Protection,
  withConnection: WithConnection,
): OutboxOperatorStore {
  return {
    listRefused: (options) => withConnection((connection) => listRefused(connection, sql, options)),
    groups: (filter, limit) => withConnection((connection) => groupRefused(connection, sql, filter, limit)),
    count: (filter) =>
      withConnection(async (connection) => {
        const { rows } = await connection.query<{ entries: number }>(sql.countRefused, refusedValues(filter));
        return rows[0]?.entries ?? 0;
      }),
    showRefused: (id) => withConnection((connection) => showRefused(connection, sql, id)),
    open: ({ destination, digest }, body) => protection.open(bodyOwner(destination, digest), body),
    listWaiting: (options) => withConnection((connection) => listWaiting(connection, sql, options)),
    status: () => withConnection((connection) => outboxStatus(connection, sql)),
    facts: (effects) => withConnection((connection) => effectFacts(connection, sql, effects)),

    decide: (kind, id, decider) =>
      withConnection((connection) => decideOnEffect(connection, sql, kind, id, decider)),
    repair: (id, repair, decider) =>
      withConnection((connection) => repairOneEffect(connection, sql, protection, id, repair, decider)),
    decideMany: (kind, filter, decider, expected) =>
      withConnection((connection) => decideOnEffects(connection, sql, kind, filter, decider, expected)),
    carryOn: (decisionId) => withConnection((connection) => carryOnEffects(connection, sql, decisionId)),
    unfinished: () => withConnection((connection) => unfinishedDecisions(connection, sql.decisions)),
    decisions: (limit) => withConnection((connection) => listDecisions(connection, sql.decisions, limit)),

    report: (relayId, reports, closed) =>
      withConnection(async (connection) => {
        await connection.query(sql.reportRelay, [
          relayId,
          textArray(reports.map(({ destination }) => destination)),
          nullableNumbers(reports.map(({ pausedForMs }) => pausedForMs)),
          nullableNumbers(reports.map(({ lastSentMs }) => lastSentMs)),
          numberArray(reports.map(({ sent }) => sent)),
          numberArray(reports.map(({ failed }) => failed)),
          numberArray(reports.map(({ inHand }) => inHand)),
          nullableTextArray(
            reports.map(({ lastError }) =>
              lastError === undefined ? undefined : safeText(lastError, 1_024),
            ),
          ),
          closed,
        ]);
        if (closed) await connection.query(sql.forgetRelays);
      }),
    abandonedLanes: (destination) =>
      withConnection(async (connection) => {
        const { rows } = await connection.query<{ lane: number }>(sql.abandonedLanes, [destination]);
        return rows.map(({ lane }) => Number(lane));
      }),
    ...forgetting(sql, withConnection),
  };
}

const nullableNumbers = (values: readonly (number | undefined)[]): string =>
  `{${values.map((value) => (value === undefined ? "NULL" : Math.round(value))).join(",")}}`;
