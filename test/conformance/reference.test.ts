import { conformance } from "./conformance.ts";
import { subject } from "./subjects/reference.ts";

conformance(subject);
