import { conformance } from "./conformance.ts";
import { subject } from "./subjects/kafka-kafkajs.ts";

conformance(subject);
