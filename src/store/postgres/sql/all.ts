import { findAnswerSql, holdRequestSql, keepAnswerSql, otherRequestSql } from "./answers.ts";
import { claimSql } from "./claim.ts";
import { loadCursorSql, saveCursorSql } from "./cursors.ts";
import {
  followLogsSql,
  lockCursorSql,
  moveLogsSql,
  ownedLogsSql,
  ownLogSql,
  raiseLogSql,
  readCursorSql,
  findRecordsSql,
  recordLogSql,
  reserveIdentitiesSql,
  writeCursorSql,
} from "./logs.ts";
import { insertQuarantineSql, reserveIdentitySql, reserveSentSql } from "./quarantine.ts";
import { quarantineDecideSql } from "./quarantine-decide.ts";
import { quarantineReadSql } from "./quarantine-read.ts";
import { operatorSql } from "./operator.ts";
import {
  acceptSql,
  findProcessedSql,
  finishSql,
  holdSql,
  insertPendingSql,
  lastPositionSql,
  hintSql,
  openLanesSql,
  parkedKeysSql,
  parkForDecisionSql,
  parkKeySql,
  pendingWaitsSql,
  removePendingSql,
  renewLeasesSql,
  reschedulePendingSql,
  takeSql,
  unprocessSql,
} from "./pending.ts";
import { countAttemptsSql, recordAttemptSql } from "./record-attempt.ts";
import { retentionSql } from "./retention.ts";
import { unclaimSql } from "./unclaim.ts";
import { clearStartedSql, closeWorkerSql, heartbeatSql, markStartedSql, openWorkerSql } from "./workers.ts";

/** Every statement of the store, with the schema's name filled in once. */
export type PostgresSql = ReturnType<typeof postgresSql>;

export const postgresSql = (schema: string) => ({
  claim: claimSql(schema),
  unclaim: unclaimSql(schema),
  recordAttempt: recordAttemptSql(schema),
  countAttempts: countAttemptsSql(schema),
  hint: hintSql,
  openLanes: openLanesSql(schema),
  accept: acceptSql(schema),
  take: takeSql(schema),
  renewLeases: renewLeasesSql(schema),
  hold: holdSql(schema),
  finish: finishSql(schema),
  parkedKeys: parkedKeysSql(schema),
  unprocess: unprocessSql(schema),
  insertPending: insertPendingSql(schema),
  reschedulePending: reschedulePendingSql(schema),
  parkKey: parkKeySql(schema),
  parkForDecision: parkForDecisionSql(schema),
  removePending: removePendingSql(schema),
  findProcessed: findProcessedSql(schema),
  lastPosition: lastPositionSql(schema),
  pendingWaits: pendingWaitsSql(schema),
  reserveIdentity: reserveIdentitySql(schema),
  reserveSent: reserveSentSql(schema),
  insertQuarantine: insertQuarantineSql(schema),
  ...quarantineReadSql(schema),
  ...quarantineDecideSql(schema),
  ...operatorSql(schema),
  ...retentionSql(schema),
  openWorker: openWorkerSql(schema),
  heartbeat: heartbeatSql(schema),
  closeWorker: closeWorkerSql(schema),
  markStarted: markStartedSql(schema),
  clearStarted: clearStartedSql(schema),
  loadCursor: loadCursorSql(schema),
  saveCursor: saveCursorSql(schema),
  raiseLog: raiseLogSql(schema),
  ownLog: ownLogSql(schema),
  ownedLogs: ownedLogsSql(schema),
  followLogs: followLogsSql(schema),
  moveLogs: moveLogsSql(schema),
  readCursor: readCursorSql(schema),
  findRecords: findRecordsSql(schema),
  recordLog: recordLogSql(schema),
  lockCursor: lockCursorSql(schema),
  writeCursor: writeCursorSql(schema),
  reserveIdentities: reserveIdentitiesSql(schema),
  keepAnswer: keepAnswerSql(schema),
  findAnswer: findAnswerSql(schema),
  holdRequest: holdRequestSql(),
  otherRequest: otherRequestSql(),
});
