import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { Webhook } from "standardwebhooks";
import fc from "fast-check";
import { formatByName } from "../../../src/message/formats/formats.ts";
import { isAgain, isRefused, isSent, kindOf, type Again, type Answer } from "../../../src/relay/answer.ts";
import type { Destination } from "../../../src/relay/destination.ts";
import { effectOf } from "../../../src/relay/effect.ts";
import { httpDestination, type HttpDestinationOptions } from "../../../src/relay/destinations/http/http.ts";
import { createIsPrivate } from "../../../src/relay/destinations/http/private-address.ts";
import { isRejected } from "../../../src/message/message.ts";
import type { TakenEffect } from "../../../src/store/outbox.ts";
import { onTestEnd, type Scope } from "../../support/cleanup.ts";
import { testOutbox } from "../../outbox/support.ts";
import { effect, startRelay, taken, until } from "../support.ts";

const secret = `whsec_${Buffer.alloc(24, 5).toString("base64")}`;

interface Seen {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

interface TestServer {
  readonly server: Server;
  readonly url: string;
  readonly seen: Seen[];
  readonly connections: () => number;
}

/** A server of the test's own: every request is read whole, noted, and then answered. */
async function testServer(
  t: Scope,
  answer: (response: ServerResponse, seen: Seen, n: number) => void,
): Promise<TestServer> {
  const seen: Seen[] = [];
  let connections = 0;
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const { method, url, headers } = request;
      const one = { method, url, headers, body: Buffer.concat(parts).toString() };
      seen.push(one);
      answer(response, one, seen.length);
    });
  });
  server.on("connection", () => connections++);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestEnd(t, () => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { server, url: `http://127.0.0.1:${port}/hook`, seen, connections: () => connections };
}

function client(t: Scope, options: HttpDestinationOptions): (more?: Partial<TakenEffect>) => Promise<Answer> {
  const destination: Destination = httpDestination(options);
  onTestEnd(t, () => destination.close?.());
  return async (more) => {
    const { signal } = new AbortController();
    return destination.deliver!(effectOf("there", taken(more)), { signal });
  };
}

const ok = (response: ServerResponse): void => void response.end("thanks");

test("a request has the id, the CloudEvent, the signature and the body as it was given", async (t) => {
  const { url, seen } = await testServer(t, ok);
  const send = client(t, { url, secret: [secret, secret], headers: { Authorization: "Bearer x" } });
  const answer = await send({
    ...{ id: "receipt/7", key: "acc 1", type: "receipt.sent", time: new Date("2026-01-02T03:04:05Z") },
    headers: { "Content-Type": "application/json", traceparent: "00-1", Connection: "close", Host: "evil" },
    payload: Buffer.from('{"a":"é"}'),
  });
  assert.ok(isSent(answer));
  assert.deepEqual([answer.status, answer.result], [200, "thanks"]);
  const [{ method, headers, body }] = seen as [Seen];
  assert.equal(method, "POST");
  assert.equal(body, '{"a":"é"}');
  const { authorization, traceparent, host, connection } = headers;
  assert.deepEqual([authorization, traceparent, connection], ["Bearer x", "00-1", "keep-alive"]);
  assert.notEqual(host, "evil");
  assert.equal(headers["idempotency-key"], '"receipt/7"');
  assert.equal(headers["content-type"], "application/json");
  assert.deepEqual(Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith("ce-"))), {
    "ce-specversion": "1.0",
    "ce-id": "receipt/7",
    "ce-source": "orders",
    "ce-type": "receipt.sent",
    "ce-time": "2026-01-02T03:04:05.000Z",
    "ce-partitionkey": "acc%201",
  });
  // The reference implementation takes it.
  new Webhook(secret).verify(body, headers as Record<string, string>);
  assert.throws(() => new Webhook(secret).verify(`${body} `, headers as Record<string, string>));
});

test("whatever id, key and type an effect has, the receiving side's inbox reads the same message", async (t) => {
  const { url, seen } = await testServer(t, ok);
  const send = client(t, { url, secret });
  const text = fc
    .string({ unit: "binary", minLength: 1, maxLength: 60 })
    .filter((one) => !one.includes("\0"));
  await fc.assert(
    fc.asyncProperty(
      text,
      text,
      fc.option(text),
      fc.dictionary(text, text),
      async (id, producer, key, headers) => {
        const answer = await send({ id, producer, key: key ?? undefined, headers });
        assert.equal(kindOf(answer), "sent");
        const request = seen.pop()!;
        const { headers: got, body } = request;
        const [item] = formatByName("cloudevents").read({ headers: got, body: Buffer.from(body) });
        assert.ok(item?.kind === "message" && !isRejected(item.received));
        const { received } = item;
        assert.deepEqual([received.id, received.producer, received.key], [id, producer, key ?? undefined]);
        new Webhook(secret).verify(request.body, request.headers as Record<string, string>);
      },
    ),
    { numRuns: 100 },
  );
});

test("a signature is that of one message: no part of an id can be taken for a time", async (t) => {
  const { url, seen } = await testServer(t, ok);
  const send = client(t, { url, secret, now: () => 1_700_000_001_000 });
  assert.ok(isSent(await send({ id: "evil.1700000000" })));
  const [{ headers }] = seen as [Seen];
  assert.equal(headers["webhook-id"], `sha256-${"0".repeat(32)}`);
  assert.equal(headers["idempotency-key"], '"evil.1700000000"');
});

test("the same id of two tenants is two keys, and an effect's own headers never say another id", async (t) => {
  const { url, seen } = await testServer(t, ok);
  const send = client(t, { url });
  for (const [i, tenant] of ["", "blue", "red"].entries()) {
    const headers = { ce_id: "other", "ce-source": "other", "Ce-PartitionKey": "k", "ce-subject": "50%" };
    assert.ok(isSent(await send({ tenant, digest: String(i).repeat(32), headers })));
  }
  assert.deepEqual(
    seen.map(({ headers }) => [headers["idempotency-key"], headers["ce-id"], headers["ce-source"]]),
    [
      ['"m1"', "m1", "orders"],
      [`"sha256-${"1".repeat(32)}"`, "m1", "blue|orders"],
      [`"sha256-${"2".repeat(32)}"`, "m1", "red|orders"],
    ],
  );
  const [{ headers }] = seen as [Seen];
  assert.deepEqual(
    [headers["ce_id"], headers["ce-partitionkey"], headers["ce-subject"]],
    [undefined, undefined, "50%25"],
  );
});

test("each status is what it says: taken, refused, to come again, or unclear", async (t) => {
  let status = 200;
  const { url } = await testServer(t, (response) => {
    response.statusCode = status;
    response.setHeader("retry-after", "7");
    response.end("because");
  });
  const send = client(t, { url });
  const expected: [number, string][] = [
    [200, "sent"],
    [201, "sent"],
    [202, "sent"],
    [301, "again effect"],
    [400, "refused"],
    [401, "again destination"],
    [404, "refused"],
    [408, "again effect"],
    [409, "again effect"],
    [410, "refused"],
    [422, "refused"],
    [429, "again destination 7000"],
    [500, "again effect"],
    [502, "again destination unclear"],
    [503, "again destination 7000"],
    [504, "again destination unclear"],
  ];
  for (const [given, says] of expected) {
    status = given;
    const answer = await send();
    const more = isAgain(answer)
      ? [answer.fault, answer.ambiguous ? "unclear" : "", answer.pauseMs ?? ""].join(" ")
      : "";
    assert.equal(`${kindOf(answer)} ${more}`.replace(/\s+/g, " ").trim(), says, String(given));
    assert.equal(answer.status, given);
    if (!isSent(answer)) assert.match(String(answer.error), new RegExp(`HTTP ${given}: because`));
  }
});

test("a Retry-After that is a date, or nonsense", async (t) => {
  let value = "";
  const { url } = await testServer(t, (response) => {
    response.statusCode = 503;
    response.setHeader("retry-after", value);
    response.end();
  });
  const send = client(t, { url, now: () => Date.parse("2026-01-01T00:00:00Z") });
  const expected: [string, number | undefined][] = [
    ["Thu, 01 Jan 2026 00:00:30 GMT", 30_000],
    ["Wed, 31 Dec 2025 00:00:30 GMT", 0],
    ["9999999999999", 86_400_000],
    ["soon", undefined],
  ];
  for (const [given, pauseMs] of expected) {
    value = given;
    assert.equal(((await send()) as Again).pauseMs, pauseMs, given);
  }
});

test("nothing that listens is certain, what breaks off after the request is not", async (t) => {
  const closed = await testServer(t, ok);
  await new Promise((resolve) => closed.server.close(resolve));
  const away = (await client(t, { url: closed.url })()) as Again;
  assert.deepEqual([kindOf(away), away.fault, away.ambiguous], ["again", "destination", false]);

  const resets = await testServer(t, (response) => void response.socket?.resetAndDestroy());
  const reset = (await client(t, { url: resets.url })()) as Again;
  assert.deepEqual([kindOf(reset), reset.fault, reset.ambiguous], ["again", "destination", true]);
  assert.equal(resets.seen.length, 1);

  // A 200 whose body does not come whole is a 200.
  const half = await testServer(t, (response) => {
    response.writeHead(200, { "content-length": "100" });
    response.write("half", () => response.socket?.resetAndDestroy());
  });
  const answer = await client(t, { url: half.url })();
  assert.ok(isSent(answer));
  assert.equal(answer.status, 200);

  // TLS that fails has carried nothing.
  const plain = (await client(t, { url: resets.url.replace("http:", "https:") })()) as Again;
  assert.deepEqual([kindOf(plain), plain.fault, plain.ambiguous], ["again", "destination", false]);
});

test("a server that takes the request and resets the connection gets it twice under one key, and it is unclear once", async (t) => {
  const place = await testOutbox(t);
  const { url, seen } = await testServer(t, (response, _seen, n) => {
    if (n === 1) response.socket?.resetAndDestroy();
    else response.end("receipt 1");
  });
  await startRelay(t, place, { there: httpDestination({ url, retryDelayMs: 10 }) });
  await place.commit((client) => place.outbox.send(client, effect("receipt/1")));
  await until(place.waiting, (waiting) => waiting.length === 0);
  assert.deepEqual(
    seen.map(({ headers }) => headers["idempotency-key"]),
    ['"receipt/1"', '"receipt/1"'],
  );
  const { rows } = await place.pool.query(
    "select attempt, outcome, code, status, result from outbox_attempt order by attempt",
  );
  assert.deepEqual(rows, [
    { attempt: 1, outcome: "ambiguous", code: "destination-unclear", status: null, result: null },
    { attempt: 2, outcome: "sent", code: null, status: 200, result: "receipt 1" },
  ]);
});

test("a server that never answers is left after the time, and the request is unclear", async (t) => {
  const place = await testOutbox(t);
  let cut = 0;
  const { url } = await testServer(t, (response, _seen, n) => {
    if (n === 1) response.on("close", () => cut++);
    else response.end();
  });
  await startRelay(t, place, { there: httpDestination({ url, timeoutMs: 100, retryDelayMs: 10 }) });
  await place.commit((client) => place.outbox.send(client, effect("m1")));
  await until(place.waiting, (waiting) => waiting.length === 0);
  assert.deepEqual(await place.attempts(), ["m1: ambiguous", "m1: sent"]);
  await until(() => cut === 1);
});

test("connections stay open, and as many are used as were allowed", async (t) => {
  const place = await testOutbox(t);
  const { url, seen, connections } = await testServer(t, ok);
  await startRelay(t, place, { there: httpDestination({ url, concurrency: 3 }) });
  await place.commit((client) =>
    place.outbox.sendAll(
      client,
      Array.from({ length: 200 }, (_, i) => effect(`m${i}`)),
    ),
  );
  await until(place.waiting, (waiting) => waiting.length === 0);
  assert.equal(seen.length, 200);
  assert.ok(connections() <= 3, `${connections()} connections`);
});

test("redirects keep method and body, do not carry credentials elsewhere, and end", async (t) => {
  const target = await testServer(t, ok);
  const first = await testServer(t, (response, { url }) => {
    response.writeHead(url === "/see" ? 303 : 307, { location: url === "/loop" ? "/loop" : target.url });
    response.end();
  });
  const options = {
    headers: { authorization: "Bearer x", "x-api-key": "y" },
    secret,
    allowPrivateAddresses: true,
  };
  const hook = client(t, { ...options, url: first.url });
  assert.equal(kindOf(await hook({ headers: { cookie: "c", own: "stays" } })), "sent");
  const [{ method, headers, body }] = target.seen as [Seen];
  assert.deepEqual([method, body, headers["own"]], ["POST", "{}", "stays"]);
  assert.deepEqual(
    [headers["authorization"], headers["x-api-key"], headers["cookie"]],
    [undefined, undefined, undefined],
  );
  new Webhook(secret).verify(body, headers as Record<string, string>);

  const loop = await client(t, { ...options, url: new URL("/loop", first.url), maxRedirects: 2 })();
  assert.deepEqual([kindOf(loop), loop.status], ["again", 307]);
  assert.equal(first.seen.filter(({ url }) => url === "/loop").length, 3);
  // 303 would turn it into a GET without a body: nothing was taken.
  assert.equal(kindOf(await client(t, { ...options, url: new URL("/see", first.url) })()), "again");
});

test("no redirect and no URL of a stranger leads to a private address, however it is written", async (t) => {
  const inside = await testServer(t, ok);
  const { port } = new URL(inside.url);
  const names = [
    ...[`127.0.0.1:${port}`, `localhost:${port}`, `2130706433:${port}`, `0x7f.1:${port}`, `127.1:${port}`],
    ...[`[::1]:${port}`, `[::ffff:127.0.0.1]:${port}`, `[::ffff:7f00:1]:${port}`, `0.0.0.0:${port}`],
    ...["169.254.169.254", "10.0.0.1", "[fd00::1]", "[fe80::1]", "[64:ff9b::7f00:1]"],
  ];
  for (const name of names) {
    const answer = await client(t, { url: () => `http://${name}/` })();
    assert.ok(isRefused(answer), name);
    assert.match(String(answer.error), /private address/, name);
    const redirecting = await testServer(t, (response) => {
      response.writeHead(308, { location: `http://${name}/` });
      response.end();
    });
    const redirected = await client(t, { url: redirecting.url })();
    assert.ok(isRefused(redirected), name);
  }
  assert.deepEqual(inside.seen, []);
  // A connection that was allowed serves nothing that is not.
  const both = client(t, { url: inside.url });
  assert.equal(kindOf(await both()), "sent");
  assert.equal(kindOf(await client(t, { url: () => inside.url, allowPrivateAddresses: true })()), "sent");
  for (const url of [() => "file:///etc/passwd", () => "nonsense", () => "ftp://example.com"]) {
    assert.ok(isRefused(await client(t, { url })()));
  }
});

test("public addresses are not private", () => {
  const isPrivate = createIsPrivate();
  for (const address of ["1.1.1.1", "8.8.8.8", "172.32.0.1", "2606:4700:4700::1111", "::ffff:1.1.1.1"]) {
    assert.equal(isPrivate(address), false, address);
  }
  for (const address of ["", "nonsense", "::ffff:10.0.0.1", "0:0:0:0:0:ffff:a00:1", "::", "fe80::1%eth0"]) {
    assert.equal(isPrivate(address), true, address);
  }
});

test("a huge answer is not read to its end, and a hostile one is only text", async (t) => {
  const place = await testOutbox(t);
  const { url } = await testServer(t, (response, { headers }) => {
    response.statusCode = headers["idempotency-key"] === '"refused"' ? 400 : 200;
    response.write(Buffer.concat([Buffer.from("a\0b\ud800"), Buffer.alloc(1_000, 0xff)]));
    const more = (): void => {
      while (!response.destroyed && response.write(Buffer.alloc(65_536, 0x61)));
      response.once("drain", more);
    };
    more();
  });
  await startRelay(t, place, { there: httpDestination({ url }) });
  await place.commit((client) => place.outbox.sendAll(client, [effect("taken"), effect("refused")]));
  await until(place.attempts, (attempts) => attempts.length === 2);
  const { rows } = await place.pool.query<{ outcome: string; text: string; long: number }>(
    "select outcome, concat(result, error) as text, length(concat(result, error)) as long from outbox_attempt order by outcome",
  );
  assert.deepEqual(
    rows.map(({ outcome, text }) => [outcome, text.includes("a\u2400b")]),
    [
      ["rejected", true],
      ["sent", true],
    ],
  );
  assert.ok(rows.every(({ long }) => long < 4_200));
});

test("options that break their rule are refused, and no secret is shown", () => {
  const wrong: [Partial<HttpDestinationOptions>, RegExp][] = [
    [{ url: "nonsense" }, /url must be/],
    [{ url: "ftp://user:pass@host" }, /^(?!.*pass).*url must be/],
    [{ secret: "short" }, /^(?!.*short).*secret must be/],
    [{ secret: [secret, "whsec_éé"] }, /secret must be/],
    [{ maxRedirects: -1 }, /maxRedirects/],
    [{ concurrency: 0 }, /concurrency/],
  ];
  for (const [options, says] of wrong) {
    assert.throws(() => httpDestination({ url: "http://host", ...options }), {
      code: "invalid-option",
      message: says,
    });
  }
});
