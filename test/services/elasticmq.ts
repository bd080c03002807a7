import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { SqsFacts } from "./facts.ts";
import { javaPrograms } from "./maven.ts";
import { speaksSqs, sqsAt } from "./sqs-address.ts";
import type { Way } from "./way.ts";

const host = "127.0.0.1";
const programs = javaPrograms("elasticmq");

/** ElasticMQ from Maven Central. Queues and messages are on the disk, so that they outlive a kill. */
export const elasticmq: Way<SqsFacts> = {
  name: "ElasticMQ of Maven Central",
  ports: ["http"],
  open: programs.open,
  plan({ directory, ports }) {
    const port = ports["http"]!;
    const config = join(directory, "elasticmq.conf");
    const storage = join(directory, "data");
    return {
      facts: sqsAt(host, port),
      commands: [
        {
          name: "elasticmq",
          program: "java",
          args: [
            ...["-Xms48m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
            `-Dconfig.file=${config}`,
            ...["-cp", programs.classPath, "org.elasticmq.server.Main"],
          ],
        },
      ],
      async setUp() {
        mkdirSync(storage);
        // H2 writes half a second late unless it is told not to.
        const database = `jdbc:h2:${join(storage, "messages")};WRITE_DELAY=0;DB_CLOSE_ON_EXIT=FALSE`;
        writeFileSync(
          config,
          [
            'include classpath("application.conf")',
            `node-address { protocol = http, host = "${host}", port = ${port}, context-path = "" }`,
            `rest-sqs { enabled = true, bind-port = ${port}, bind-hostname = "${host}", sqs-limits = strict }`,
            "rest-stats { enabled = false }",
            `queues-storage { enabled = true, path = ${JSON.stringify(join(storage, "queues.conf"))} }`,
            `messages-storage { enabled = true, uri = ${JSON.stringify(database)}, prune-data-on-init = false }`,
            "",
          ].join("\n"),
        );
      },
      check: () => speaksSqs(sqsAt(host, port)),
      startTimeoutMs: 60_000,
      stopTimeoutMs: 10_000,
    };
  },
};
