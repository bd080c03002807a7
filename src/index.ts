// The public surface.
export { InboxError, PermanentError, errorCatalogue } from "./errors.ts";
export type { ErrorCode } from "./errors.ts";
export { createMessage, receiveMessage } from "./message/create-message.ts";
export { isRejected } from "./message/message.ts";
export type {
  Identity,
  Message,
  MessageInput,
  Received,
  RejectedMessage,
  RejectionCode,
} from "./message/message.ts";
export type { FingerprintOptions } from "./message/fingerprint-mode.ts";
export type { IdTime } from "./message/id-time.ts";
export * as formats from "./message/formats/public.ts";
export { createInbox } from "./inbox/create-inbox.ts";
export type { Given, Inbox } from "./inbox/create-inbox.ts";
export type { Answer, Answers, RequestMark } from "./inbox/answers.ts";
export { batch, quarantine, retryIn } from "./inbox/handler.ts";
export type { BatchHandler, Handler, HandlerContext, HandlerTx, MessageHandler } from "./inbox/handler.ts";
export type { ErrorClass, ErrorClassifier } from "./inbox/classify-error.ts";
export type { DryRun, DryRunAnswer, DryRunEffect, DryRunOptions, DryRunStatement } from "./inbox/dry-run.ts";
export type { InboxOptions, Order } from "./inbox/options.ts";
export type { BackOff, RetryOptions } from "./inbox/retry.ts";
export type { Outcome, Processed } from "./inbox/outcome.ts";
export type { JoinedResult } from "./inbox/process-in-transaction.ts";
export type { PendingStats, Run, RunHealth, RunOptions, RunStats } from "./inbox/run.ts";
export type { OutcomeCounts } from "./inbox/outcome-counts.ts";
export type { Work, WorkHealth, WorkOptions, WorkStats } from "./inbox/work.ts";
export type { WorkerOptions } from "./inbox/worker.ts";
export type { HandlerEffect, HandlerOutbox, OutboxSettings } from "./inbox/handler-outbox.ts";
export { createOutbox } from "./outbox/outbox.ts";
export type { Outbox, OutboxOptions } from "./outbox/outbox.ts";
export type { EffectInput, SentEffect } from "./outbox/effect.ts";
export { createOutboxConsole } from "./outbox/console.ts";
export type { OpenRefusedFilter, OutboxConsole, OutboxConsoleOptions } from "./outbox/console.ts";
export type { EffectHistory, EffectName, EffectOutcome } from "./outbox/effect-history.ts";
export { forgetEffects } from "./outbox/forget.ts";
export type { ForgetEffectsOptions, ForgottenEffects } from "./outbox/forget.ts";
export type { EffectRepairInput } from "./outbox/repair-effect.ts";
export { effectIdOf, effectResults } from "./outbox/results.ts";
export type { EffectResult } from "./outbox/results.ts";
export type { EffectRepairPreview, ShownBody, ShownRefusedEffect } from "./outbox/show-effect.ts";
export type {
  DestinationStatus,
  EffectAttempt,
  EffectFacts,
  EffectState,
  RefusedEffect,
  RefusedFilter,
  RefusedGroup,
  RefusedListOptions,
  WaitingEffect,
  WaitingFilter,
  WaitingListOptions,
} from "./store/outbox-operator.ts";
export { sql, statement } from "./store/statement.ts";
export type { BuiltStatement, QueryResult, Statement, Tx } from "./store/statement.ts";
export type { IsolationLevel, Store } from "./store/store.ts";
export type {
  EntryDecision,
  QuarantineEntry,
  QuarantineFilter,
  QuarantineGroup,
  QuarantineListOptions,
  QuarantineRow,
  QuarantineStatus,
  RepairedAs,
} from "./store/quarantine-entry.ts";
export type { BulkDecision, Decider } from "./store/quarantine-store.ts";
export { createQuarantine } from "./quarantine/quarantine.ts";
export type {
  CarryOnOptions,
  ManyDecider,
  OpenFilter,
  PurgeOptions,
  Quarantine,
  QuarantineOptions,
} from "./quarantine/quarantine.ts";
export type { Chunks } from "./quarantine/chunk-lines.ts";
export type { ExportedBodies } from "./quarantine/export-entries.ts";
export type { ImportOptions, ImportSummary } from "./quarantine/import-entries.ts";
export type { RedactionOptions } from "./quarantine/redact.ts";
export type { RepairInput } from "./quarantine/repair.ts";
export { repairedMessage } from "./quarantine/repair.ts";
export type { RepairPreview, ShownEntry, ShownRepair } from "./quarantine/show-entry.ts";
export type { ShownPayload } from "./quarantine/shown-body.ts";
export { createPending } from "./pending/pending.ts";
export type { ConsumersMessage, Pending, PendingOptions, ShownPending } from "./pending/pending.ts";
export { explain } from "./explain/explain.ts";
export type { ExplainRequest, Explanation, MessageState, WaitsFor } from "./explain/explain.ts";
export type {
  AttemptRow,
  IdentityFilter,
  LaneLease,
  MessageFacts,
  ParkedKey,
  PendingEntry,
  PendingFilter,
  PendingListOptions,
  PendingRow,
  PendingState,
  StartedMark,
} from "./store/operator-store.ts";
export type { PayloadKey, PayloadKeys } from "./store/protection.ts";
export { postgres } from "./store/postgres/postgres.ts";
export type { PostgresOptions } from "./store/postgres/postgres.ts";
export { migrate, printMigrations } from "./store/postgres/migrate.ts";
export type { MigrateOptions, MigrateResult } from "./store/postgres/migrate.ts";
export type { Delivery, Intake, RunFacts, Settlement, Source } from "./sources/source.ts";
export { ndjson } from "./sources/ndjson/ndjson.ts";
export type { NdjsonOptions, NdjsonProgress, NdjsonSource } from "./sources/ndjson/ndjson.ts";
export { documents } from "./sources/documents/documents.ts";
export type { DocumentsOptions, DocumentsProgress, DocumentsSource } from "./sources/documents/documents.ts";
export type { CheckpointStore } from "./sources/ndjson/checkpoint.ts";
export type { LineIdentity, PlainLines } from "./sources/ndjson/read-line.ts";
export { reconcile } from "./reconcile/reconcile.ts";
export type { ReconcileReport } from "./reconcile/reconcile.ts";
export type { ReconcileOptions } from "./reconcile/options.ts";
export type { Difference, DifferenceKind } from "./reconcile/difference.ts";
export { sentFile } from "./reconcile/sent-file.ts";
export type { SentFileOptions } from "./reconcile/sent-file.ts";
export { sentInbox, sentQuery } from "./reconcile/sent-query.ts";
export type { SentInboxOptions, SentQueryOptions } from "./reconcile/sent-query.ts";
export type { SentMessage, SentReading, SentSource, TimeRange } from "./reconcile/sent.ts";
export { projection } from "./replay/policy.ts";
