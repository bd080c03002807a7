import { Command } from "commander";
import type { Io } from "../io.ts";
import type { Action } from "../program.ts";
import { quarantineDecideCommand } from "./quarantine-decide.ts";
import { quarantineDecisionsCommand } from "./quarantine-decisions.ts";
import { quarantineDryRunCommand } from "./quarantine-dry-run.ts";
import { quarantineExportCommand } from "./quarantine-export.ts";
import { quarantineGroupsCommand } from "./quarantine-groups.ts";
import { quarantineImportCommand } from "./quarantine-import.ts";
import { quarantineListCommand } from "./quarantine-list.ts";
import { quarantinePurgeCommand } from "./quarantine-purge.ts";
import { quarantineRepairCommand } from "./quarantine-repair.ts";
import { quarantineResumeCommand } from "./quarantine-resume.ts";
import { quarantineShowCommand } from "./quarantine-show.ts";

/** `inbox quarantine …`: messages that wait for a person. */
export const quarantineCommand = (io: Io, ended: Action): Command =>
  new Command("quarantine")
    .description("messages that were set aside for a person")
    .addCommand(quarantineGroupsCommand(io, ended))
    .addCommand(quarantineListCommand(io, ended))
    .addCommand(quarantineShowCommand(io, ended))
    .addCommand(quarantineDryRunCommand(io, ended))
    .addCommand(quarantineDecideCommand(io, ended, "retry"))
    .addCommand(quarantineDecideCommand(io, ended, "apply"))
    .addCommand(quarantineRepairCommand(io, ended))
    .addCommand(quarantineDecideCommand(io, ended, "discard"))
    .addCommand(quarantineResumeCommand(io, ended))
    .addCommand(quarantineDecisionsCommand(io, ended))
    .addCommand(quarantineExportCommand(io, ended))
    .addCommand(quarantineImportCommand(io, ended))
    .addCommand(quarantinePurgeCommand(io, ended));
