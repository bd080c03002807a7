import { toNodeListener } from "./node-listener.ts";

type Raw = Parameters<ReturnType<typeof toNodeListener>>;

/** The part of a Fastify instance that is used. */
export interface FastifyLike {
  removeAllContentTypeParsers(): unknown;
  addContentTypeParser(
    contentType: string,
    parser: (request: unknown, payload: unknown, done: (error: null) => void) => void,
  ): unknown;
  all(
    path: string,
    handler: (
      request: { readonly raw: Raw[0] },
      reply: { readonly raw: Raw[1]; hijack(): unknown },
    ) => unknown,
  ): unknown;
}

/** A Fastify plugin: `app.register(toFastifyPlugin(receiver), { prefix: "/hooks" })`. */
export type FastifyPlugin = (instance: FastifyLike, options: unknown, done: () => void) => void;

/**
 * Makes a Fastify plugin of a receiver, for its prefix. Inside it Fastify's parsers are left out, as they would read the
 * body before it is verified; routes outside keep theirs.
 */
export function toFastifyPlugin(receiver: (request: Request) => Promise<Response>): FastifyPlugin {
  const listener = toNodeListener(receiver);
  return (instance, _options, done) => {
    instance.removeAllContentTypeParsers();
    instance.addContentTypeParser("*", (_request, _payload, parsed) => parsed(null));
    instance.all("/", (request, reply) => {
      reply.hijack();
      listener(request.raw, reply.raw);
    });
    done();
  };
}
