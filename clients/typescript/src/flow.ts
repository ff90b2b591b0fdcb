/** Flows: jobs that wait for each other or are parts of each other, posted in one command, all or none. */
import type { Board } from './board/board.js';
import type { Node } from './board/posting.js';
import type { Call } from './tasks.js';
import type { After, AfterAll, AfterChildren } from './words.js';

/** A job of a flow, by which others name it. */
export interface Step {
  readonly label: string;
}

type Others = Step | string | readonly (Step | string)[];

/** How a job of a flow hangs together with others: steps of the flow, or ids of the board. */
export interface Relations {
  /** Jobs that must be complete before it runs. */
  after?: Others | undefined;
  /** All its children must have ended before it runs. */
  afterChildren?: boolean | undefined;
  /** What happens to it when one of them fails; `hold` by default. */
  onfailure?: AfterAll['onfailure'];
  /** The job that it is a part of. */
  parent?: Step | string | undefined;
}

/** A job with its children, which run before it: what other libraries call a flow. */
export interface Tree {
  readonly job: Call;
  readonly children?: readonly Tree[];
  /** What happens to the parent when a child fails; `hold` by default. */
  readonly onfailure?: AfterAll['onfailure'];
}

/**
 * Jobs that are posted together.
 *
 *     const flow = new Flow(board);
 *     const sizes = [100, 800].map((width) => flow.add(resize.job({ url, width })));
 *     flow.add(publish.job({ url }), { after: sizes, onfailure: 'cancel' });
 *     const ids = await flow.post();
 */
export class Flow {
  readonly #nodes: Node[] = [];
  readonly #board: Board;

  constructor(board: Board) {
    this.#board = board;
  }

  /** Adds a job: a call of a task, or a payload with options. */
  add(job: Call, { after, afterChildren, onfailure, parent }: Relations = {}): Step {
    const label = job.label ?? `${job.name ?? 'job'}-${String(this.#nodes.length + 1)}`;
    if (this.#nodes.some((node) => node.label === label)) throw new Error(`two jobs of the flow have the label '${label}'`);
    const ids = (after === undefined ? [] : Array.isArray(after) ? (after as readonly (Step | string)[]) : [after as Step]).map(labelOf);
    const children = afterChildren === true ? [{ children: true as const, onfailure }] : [];
    const own = [...(ids.length === 0 ? [] : [{ ids, onfailure }]), ...children];
    const waits: After | undefined = own.length === 0 ? job.after : [...lists(job.after), ...own];
    this.#nodes.push({ ...job, label, after: waits, ...(parent === undefined ? {} : { parent: labelOf(parent) }) });
    return { label };
  }

  /** Adds jobs that run one after the other; the last one. */
  chain(jobs: readonly Call[], relations: Relations = {}): Step {
    let last: Step | undefined;
    for (const job of jobs) {
      last = this.add(job, last === undefined ? relations : { ...relations, after: last });
    }
    if (last === undefined) throw new TypeError('a chain has jobs');
    return last;
  }

  /** Adds a job with its children: it runs when all of them are complete, and shows their progress. */
  tree({ job, children = [], onfailure }: Tree, parent?: Step): Step {
    const label = job.label ?? `${job.name ?? 'job'}-${String(this.#nodes.length + 1)}-${String(this.#nodes.length)}`;
    const step = { label };
    const at = this.#nodes.length;
    this.#nodes.push({ ...job, label, ...(parent === undefined ? {} : { parent: parent.label }) });
    const parts = children.map((child) => this.tree(child, step));
    if (parts.length > 0) {
      const ids = parts.map((part) => part.label);
      this.#nodes[at] = { ...(this.#nodes[at] as Node), after: [...lists(job.after), { ids, onfailure }] };
    }
    return step;
  }

  /** Posts all of them; their ids, in the order in which they were added. */
  async post(): Promise<string[]> {
    return this.#board.flow(this.#nodes);
  }
}

const labelOf = (one: Step | string): string => (typeof one === 'string' ? one : one.label);

function lists(after: After | undefined): readonly (AfterAll | AfterChildren)[] {
  if (after === undefined) return [];
  if (!Array.isArray(after)) return [after as AfterAll | AfterChildren];
  const items = after as readonly (string | AfterAll | AfterChildren)[];
  return items.length > 0 && typeof items[0] === 'string' ? [{ ids: items as readonly string[] }] : (items as readonly (AfterAll | AfterChildren)[]);
}
