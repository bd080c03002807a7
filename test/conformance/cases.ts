import type { Case } from "./case.ts";
import { backPressure } from "./cases/back-pressure.ts";
import { brokerRestart } from "./cases/broker-restart.ts";
import { cutInAck, cutInHandler } from "./cases/cuts.ts";
import { dies } from "./cases/dies.ts";
import { duplicates } from "./cases/duplicates.ts";
import { gracefulStop } from "./cases/graceful-stop.ts";
import { health } from "./cases/health.ts";
import { joinsAndLeaves } from "./cases/joins-and-leaves.ts";
import { lease } from "./cases/lease.ts";
import { noIdentity } from "./cases/no-identity.ts";
import { order } from "./cases/order.ts";
import { poison } from "./cases/poison.ts";
import { stoppedProcess } from "./cases/stopped-process.ts";
import { storeAway } from "./cases/store-away.ts";

/** The whole suite; the long ones first, so that they run beside the others. */
export const cases: readonly Case[] = [
  dies,
  joinsAndLeaves,
  brokerRestart,
  order,
  lease,
  stoppedProcess,
  cutInHandler,
  cutInAck,
  poison,
  gracefulStop,
  duplicates,
  noIdentity,
  storeAway,
  backPressure,
  health,
];
