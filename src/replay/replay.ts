export type {
  ReplayBatchHandler,
  ReplayContext,
  ReplayHandler,
  ReplayMessageHandler,
} from "./handler-effects.ts";
export { replayKafka } from "./kafka-range.ts";
export type { KafkaOffsetsAdmin, ReplayKafkaOptions } from "./kafka-range.ts";
export type { SkipReason } from "./only-applied.ts";
export { planReplay } from "./plan.ts";
export type { ByVersion, OriginalSide, ReplayPlan, ReplayPlanOptions } from "./plan.ts";
export { migrationConsumer, operationId, projection } from "./policy.ts";
export type {
  CompensatePolicy,
  ProjectionPolicy,
  RebuildPolicy,
  ReplayEffects,
  ReplayPolicy,
} from "./policy.ts";
export { replay } from "./replay-run.ts";
export type { Replay, ReplayCounts, ReplayOptions, ReplayReport } from "./replay-run.ts";
export { replayFile, replayStored } from "./replay-source.ts";
export type { ReplayPlace, ReplaySource } from "./replay-source.ts";
export type { CaughtUp, ReplayRow, RetiredConsumer } from "./replay-tables.ts";
export { caughtUp, listReplays, retire, retiredConsumers } from "./retire.ts";
export type { ReplayTablesOptions, RetireOptions } from "./retire.ts";
export type { StoredBodiesOptions, StoredPart } from "./stored-bodies.ts";
