import { conformance } from "./conformance.ts";
import { subject } from "./subjects/sqs-standard.ts";

conformance(subject);
