import { conformance } from "./conformance.ts";
import { subject } from "./subjects/rabbitmq-amqplib.ts";

conformance(subject);
