import { conformance } from "./conformance.ts";
import { subject } from "./subjects/rabbitmq-quorum.ts";

conformance(subject);
