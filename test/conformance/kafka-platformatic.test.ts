import { conformance } from "./conformance.ts";
import { subject } from "./subjects/kafka-platformatic.ts";

conformance(subject);
