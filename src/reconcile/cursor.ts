import type { DriverConnection } from "../store/postgres/driver.ts";

const batchRows = 5_000;

/**
 * The rows of a query, some thousands at a time, in the transaction that is open on the connection. The next batch is on
 * its way while this one is worked on.
 */
export async function* readCursor<Row>(
  connection: DriverConnection,
  query: string,
  values: readonly unknown[],
): AsyncGenerator<readonly Row[]> {
  await connection.query(`declare inbox_rows no scroll cursor for ${query}`, values);
  const fetch = async (): Promise<readonly Row[]> =>
    (await connection.query<Row>(`fetch forward ${batchRows} from inbox_rows`)).rows;
  let next = fetch();
  for (;;) {
    const rows = await next;
    if (rows.length === 0) break;
    next = fetch();
    // Nobody waits for it if the reader stops here; the transaction ends then.
    next.catch(() => undefined);
    yield rows;
  }
  await connection.query("close inbox_rows");
}
