import { conformance } from "./conformance.ts";
import { subject } from "./subjects/sqs-fifo.ts";

conformance(subject);
