import { conformance } from "./conformance.ts";
import { subject } from "./subjects/rabbitmq-client.ts";

conformance(subject);
