import { migration0001 } from "./0001-inbox.ts";
import { migration0002 } from "./0002-answer.ts";
import { migration0003 } from "./0003-pending.ts";
import { migration0004 } from "./0004-decisions.ts";
import { migration0005 } from "./0005-outbox.ts";
import { migration0006 } from "./0006-log-owner.ts";
import { migration0007 } from "./0007-outbox-decisions.ts";
import { migration0008 } from "./0008-replay.ts";
import { migration0009 } from "./0009-retention.ts";
import { migration0010 } from "./0010-progress.ts";
import { migration0011 } from "./0011-outbox-bundles.ts";
import { migration0012 } from "./0012-log-cursor.ts";
import { migration0013 } from "./0013-closed-reach.ts";
import type { Migration } from "./migration.ts";

/** Every step in order; a step's version is its place, counted from 1. */
export const migrations: readonly Migration[] = [
  migration0001,
  migration0002,
  migration0003,
  migration0004,
  migration0005,
  migration0006,
  migration0007,
  migration0008,
  migration0009,
  migration0010,
  migration0011,
  migration0012,
  migration0013,
];

/** The version this release works with. */
export const currentVersion: number = migrations.length;
