/** Standard Schema: what Zod, Valibot, ArkType and others have in common (https://standardschema.dev). */
import { ArgumentError } from './errors.js';

/** A schema of any library that keeps to Standard Schema, version 1. */
export interface Schema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => Result<Output> | Promise<Result<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

type Result<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string; readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined }[] };

/** What goes into a schema. */
export type InputOf<S> = S extends Schema<infer Input, infer _Output> ? Input : never;
/** What comes out of it. */
export type OutputOf<S> = S extends Schema<infer _Input, infer Output> ? Output : never;

/** Whether this is a schema. */
export function isSchema(found: unknown): found is Schema {
  return found !== null && (typeof found === 'object' || typeof found === 'function') && '~standard' in found;
}

/** The value as the schema gives it. Raises `ArgumentError`, which names what is wrong. */
export async function validated<Output>(schema: Schema<unknown, Output> | undefined, value: unknown, what: string): Promise<Output> {
  if (schema === undefined) return value as Output;
  const found = await schema['~standard'].validate(value);
  if (found.issues === undefined) return found.value;
  const told = found.issues.map(({ message, path }) => {
    const where = (path ?? []).map((one) => String(typeof one === 'object' ? one.key : one)).join('.');
    return where === '' ? message : `${where}: ${message}`;
  });
  throw new ArgumentError(`${what}: ${told.join('; ')}`);
}
