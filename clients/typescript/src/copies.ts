/**
 * Classes that are one in all copies of the package. A process has two copies where one module imports it and another
 * requires it, or where two versions are installed; a worker of one has to know what a handler of the other throws.
 */
const isOrdinary = Reflect.get(Function.prototype, Symbol.hasInstance) as (this: unknown, found: unknown) => boolean;

type Class = abstract new (...all: never[]) => object;

/** Lets `instanceof` hold for what another copy has made. The names are given: those of classes may be shortened. */
export function sharedByAllCopies(classes: Readonly<Record<string, Class>>): void {
  for (const [name, one] of Object.entries(classes)) {
    const mark = Symbol.for(`jobboard.${name}`);
    Object.defineProperty(one.prototype, mark, { value: true });
    Object.defineProperty(one, Symbol.hasInstance, {
      value(this: unknown, found: unknown): boolean {
        // A program's own subclass has this method from us, and no mark.
        return isOrdinary.call(this, found) || (this === one && typeof found === 'object' && found !== null && mark in found);
      },
    });
  }
}
