import { conformance } from "./conformance.ts";
import { cursorCases, withCursor } from "./subjects/kafka-cursor.ts";
import { subject } from "./subjects/kafka-confluent.ts";

conformance(withCursor(subject), cursorCases);
