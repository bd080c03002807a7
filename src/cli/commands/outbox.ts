import { Command } from "commander";
import type { Io } from "../io.ts";
import type { Action } from "../program.ts";
import { outboxDecideCommand } from "./outbox-decide.ts";
import { outboxDecisionsCommand } from "./outbox-decisions.ts";
import { outboxForgetCommand } from "./outbox-forget.ts";
import { outboxGroupsCommand } from "./outbox-groups.ts";
import { outboxListCommand } from "./outbox-list.ts";
import { outboxRepairCommand } from "./outbox-repair.ts";
import { outboxResumeCommand } from "./outbox-resume.ts";
import { outboxShowCommand } from "./outbox-show.ts";
import { outboxStatusCommand } from "./outbox-status.ts";
import { outboxWaitingCommand } from "./outbox-waiting.ts";

/** `inbox outbox …`: effects that wait to be sent, and those that were refused. */
export const outboxCommand = (io: Io, ended: Action): Command =>
  new Command("outbox")
    .description("effects that wait to be sent, and decisions on those that were refused")
    .addCommand(outboxStatusCommand(io, ended))
    .addCommand(outboxGroupsCommand(io, ended))
    .addCommand(outboxListCommand(io, ended))
    .addCommand(outboxWaitingCommand(io, ended))
    .addCommand(outboxShowCommand(io, ended))
    .addCommand(outboxDecideCommand(io, ended, "retry"))
    .addCommand(outboxRepairCommand(io, ended))
    .addCommand(outboxDecideCommand(io, ended, "discard"))
    .addCommand(outboxResumeCommand(io, ended))
    .addCommand(outboxDecisionsCommand(io, ended))
    .addCommand(outboxForgetCommand(io, ended));
