import type { Answer, AnswerStore } from "../answer.ts";
import { statement } from "../statement.ts";
import type { DriverConnection } from "./driver.ts";
import type { PostgresSql } from "./sql/all.ts";

type WithConnection = <T>(use: (connection: DriverConnection) => Promise<T>) => Promise<T>;

interface AnswerRow {
  readonly request: string;
  readonly status: number;
  readonly headers: string;
  readonly body_hex: string;
}

/** The answers kept in PostgreSQL. */
export function answerStore(sql: PostgresSql, withConnection: WithConnection): AnswerStore {
  const valuesOf = (consumer: string, digest: string, { request, status, headers, body }: Answer) => [
    ...[digest, consumer, request, status, JSON.stringify(headers)],
    Buffer.from(body.buffer, body.byteOffset, body.byteLength),
  ];

  async function read(connection: DriverConnection, digest: string): Promise<Answer | undefined> {
    const { rows } = await connection.query<AnswerRow>(sql.findAnswer, [digest]);
    const [row] = rows;
    return row === undefined
      ? undefined
      : {
          request: row.request,
          status: row.status,
          headers: JSON.parse(row.headers) as Answer["headers"],
          body: Buffer.from(row.body_hex, "hex"),
        };
  }

  return {
    keep: (consumer, digest, answer) => statement(sql.keepAnswer, valuesOf(consumer, digest, answer)),
    keepNow: (consumer, digest, answer) =>
      withConnection(async (connection) => {
        await connection.query(sql.keepAnswer, valuesOf(consumer, digest, answer));
        return (await read(connection, digest)) ?? answer;
      }),
    find: (digest) => withConnection((connection) => read(connection, digest)),
    hold: ({ body, running }) => statement(sql.holdRequest, [body, running]),
    isOtherRunning: ({ body, running }) =>
      withConnection(async (connection) => {
        const { rows } = await connection.query<{ running: boolean; other_body: boolean }>(sql.otherRequest, [
          body,
          running,
        ]);
        return rows[0]?.running === true && rows[0].other_body;
      }),
  };
}
