import { conformance } from "./conformance.ts";
import { subject } from "./subjects/kafka-confluent.ts";

conformance(subject);
