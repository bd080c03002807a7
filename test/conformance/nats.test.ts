import { conformance } from "./conformance.ts";
import { subject } from "./subjects/nats.ts";

conformance(subject);
