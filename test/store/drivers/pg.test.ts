import { driverContract } from "./contract.ts";
import { pgPipelined, pgPlain, pgPrepared, pgWrapped } from "./subject.ts";

driverContract(pgPlain);
driverContract(pgPipelined);
driverContract(pgPrepared);
driverContract(pgWrapped);
