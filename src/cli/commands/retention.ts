import { Command } from "commander";
import type { Io } from "../io.ts";
import type { Action } from "../program.ts";
import { retentionPlanCommand } from "./retention-plan.ts";
import { retentionRetireCommand } from "./retention-retire.ts";
import { retentionRotateCommand } from "./retention-rotate.ts";
import { retentionRunCommand } from "./retention-run.ts";
import { retentionStatusCommand } from "./retention-status.ts";
import { retentionWindowCommand } from "./retention-window.ts";

/** `inbox retention …`: how long identities are kept. */
export const retentionCommand = (io: Io, ended: Action): Command =>
  new Command("retention")
    .description("how long identities are kept, and forgetting them")
    .addCommand(retentionPlanCommand(io, ended))
    .addCommand(retentionWindowCommand(io, ended))
    .addCommand(retentionStatusCommand(io, ended))
    .addCommand(retentionRunCommand(io, ended))
    .addCommand(retentionRetireCommand(io, ended))
    .addCommand(retentionRotateCommand(io, ended));
