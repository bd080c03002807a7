import { testUrl } from "../../support/postgres.ts";
import { answersContract } from "./contract/answers.ts";
import { contractOf, type Reach } from "./contract/bench.ts";
import { connectionsContract } from "./contract/connections.ts";
import { lossesContract } from "./contract/losses.ts";
import { valuesContract } from "./contract/values.ts";
import type { Subject } from "./subject.ts";

/** What every driver owes the store. `reach` gives the URL the driver connects to, or undefined to skip. */
export function driverContract(subject: Subject, reach: Reach = testUrl): void {
  const contract = contractOf(subject, reach);
  answersContract(contract);
  lossesContract(contract);
  connectionsContract(contract);
  valuesContract(contract);
}
