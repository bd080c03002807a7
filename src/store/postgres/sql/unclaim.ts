/**
 * Takes back claims of the transaction that made them, by primary key, so that it can commit what it has done and
 * leave the rest for the next one.
 */
export const unclaimSql = (schema: string): string => `
delete from ${schema}.message where digest = any ($1::text::uuid[])`;
