import type { CaseName, Subject } from "../subject.ts";

/** What does not depend on the client is asked of the same subject with ids. */
export const cursorCases: readonly CaseName[] = [
  "dies",
  "joins-and-leaves",
  "order",
  "poison",
  "cut-in-handler",
  "stopped-process",
];

/** The same subject with the cursor strategy: records are told apart by their places. */
export const withCursor = (subject: Subject): Subject => ({
  ...subject,
  name: subject.name.replace(")", ", cursor)"),
  namesByPlace: true,
  lacks: {
    ...subject.lacks,
    duplicates: "what is published twice is two records",
    "no-identity": "records need no ids",
  },
  open: (t, needs, suite) => subject.open(t, { ...needs, namesByPlace: true }, suite),
});
