import { migration0001 } from "./0001-inbox.ts";
import type { Migration } from "./migration.ts";

/** Every step in order; a step's version is its place, counted from 1. */
export const migrations: readonly Migration[] = [migration0001];

/** The version this release works with. */
export const currentVersion: number = migrations.length;
