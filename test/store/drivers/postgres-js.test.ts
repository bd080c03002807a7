import { driverContract } from "./contract.ts";
import { postgresJs, postgresJsUnprepared } from "./subject.ts";

driverContract(postgresJs);
driverContract(postgresJsUnprepared);
