import { Command } from "commander";
import type { Io } from "../io.ts";
import type { Action } from "../program.ts";
import { replayListCommand } from "./replay-list.ts";
import { replayPlanCommand } from "./replay-plan.ts";
import { replayRetireCommand } from "./replay-retire.ts";
import { replayRunCommand } from "./replay-run.ts";

/** `inbox replay …`: messages handled again, by a policy. */
export const replayCommand = (io: Io, ended: Action): Command =>
  new Command("replay")
    .description("handle messages again on purpose: a read model, a projection's next version, a correction")
    .addCommand(replayPlanCommand(io, ended))
    .addCommand(replayRunCommand(io, ended))
    .addCommand(replayListCommand(io, ended))
    .addCommand(replayRetireCommand(io, ended));
