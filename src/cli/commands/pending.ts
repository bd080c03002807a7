import { Command } from "commander";
import type { Io } from "../io.ts";
import type { Action } from "../program.ts";
import { pendingListCommand } from "./pending-list.ts";
import { pendingRetryCommand } from "./pending-retry.ts";
import { pendingShowCommand } from "./pending-show.ts";

/** `inbox pending …`: messages that are stored and not handled yet. */
export const pendingCommand = (io: Io, ended: Action): Command =>
  new Command("pending")
    .description("messages that are stored and not handled yet")
    .addCommand(pendingListCommand(io, ended))
    .addCommand(pendingShowCommand(io, ended))
    .addCommand(pendingRetryCommand(io, ended));
