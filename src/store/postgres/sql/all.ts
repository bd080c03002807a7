import { findAnswerSql, holdRequestSql, keepAnswerSql, otherRequestSql } from "./answers.ts";
import { claimSql } from "./claim.ts";
import { loadCursorSql, saveCursorSql } from "./cursors.ts";
import {
  insertQuarantineSql,
  listQuarantineSql,
  reserveIdentitySql,
  showQuarantineSql,
} from "./quarantine.ts";
import { recordAttemptSql } from "./record-attempt.ts";
import { unclaimSql } from "./unclaim.ts";
import { clearStartedSql, closeWorkerSql, heartbeatSql, markStartedSql, openWorkerSql } from "./workers.ts";

/** Every statement of the store, with the schema's name filled in once. */
export type PostgresSql = ReturnType<typeof postgresSql>;

export const postgresSql = (schema: string) => ({
  claim: claimSql(schema),
  unclaim: unclaimSql(schema),
  recordAttempt: recordAttemptSql(schema),
  reserveIdentity: reserveIdentitySql(schema),
  insertQuarantine: insertQuarantineSql(schema),
  listQuarantine: listQuarantineSql(schema),
  showQuarantine: showQuarantineSql(schema),
  openWorker: openWorkerSql(schema),
  heartbeat: heartbeatSql(schema),
  closeWorker: closeWorkerSql(schema),
  markStarted: markStartedSql(schema),
  clearStarted: clearStartedSql(schema),
  loadCursor: loadCursorSql(schema),
  saveCursor: saveCursorSql(schema),
  keepAnswer: keepAnswerSql(schema),
  findAnswer: findAnswerSql(schema),
  holdRequest: holdRequestSql(),
  otherRequest: otherRequestSql(),
});
