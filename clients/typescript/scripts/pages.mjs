// The TypeScript of the documents: each block ```ts of README.md, of the package's README.md and of docs.
//
//     node scripts/pages.mjs               compiles all of them as the project of a user would, and says what is wrong
//     node scripts/pages.mjs run < block   runs one as a program
//
// A block stands alone. One without `import` goes on where the block before it ended. `// tasks.ts` in the first line names the file
// of a block, which other blocks of the page import as './tasks.js'.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

import ts from 'typescript';

const PACKAGE = dirname(dirname(fileURLToPath(import.meta.url)));
const ROOT = join(PACKAGE, '../..');
const BUILD = join(PACKAGE, 'build/pages');

/** What `tsc --init` writes, and the package as its sources are. */
const OPTIONS = {
  target: ts.ScriptTarget.ES2022,
  lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'],
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  moduleDetection: ts.ModuleDetectionKind.Force,
  customConditions: ['jobboard-tests'],
  types: ['node'],
  strict: true,
  noUncheckedIndexedAccess: true,
  noPropertyAccessFromIndexSignature: true,
  exactOptionalPropertyTypes: true,
  verbatimModuleSyntax: true,
  isolatedModules: true,
  skipLibCheck: true,
  noEmit: true,
};

/** The blocks of a page, as files: a name, the text, and the line of the page for each line of the text. */
export function filesOf(page, text) {
  const found = [];
  let block;
  for (const [at, line] of text.split('\n').entries()) {
    if (block === undefined) {
      if (line.trim() === '```ts') block = { lines: [], numbers: [] };
    } else if (line.startsWith('```')) {
      const last = found.at(-1);
      if (block.lines.some((one) => one.startsWith('import ')) || last === undefined) found.push(block);
      else {
        last.lines.push(...block.lines);
        last.numbers.push(...block.numbers);
      }
      block = undefined;
    } else {
      block.lines.push(line);
      block.numbers.push(at + 1);
    }
  }
  return found.map(({ lines, numbers }) => {
    const name = /^\/\/ (\S+\.ts)$/.exec(lines[0])?.[1] ?? `line-${numbers[0]}.ts`;
    return { page, path: join(BUILD, page.replaceAll(/\W/g, '-'), name), text: `${lines.join('\n')}\n`, numbers };
  });
}

function pages() {
  const all = readdirSync(join(ROOT, 'docs'), { recursive: true }).map((one) => join('docs', one));
  return ['README.md', 'clients/typescript/README.md', ...all.filter((one) => one.endsWith('.md')).sort()];
}

/** What is wrong in them, as `page:line: text`. */
export function problemsOf(files) {
  const texts = new Map(files.map((file) => [file.path, file]));
  const host = ts.createCompilerHost(OPTIONS);
  const { fileExists, readFile, getSourceFile, directoryExists } = host;
  host.fileExists = (path) => texts.has(path) || fileExists(path);
  host.readFile = (path) => texts.get(path)?.text ?? readFile(path);
  host.directoryExists = (path) => path.startsWith(BUILD) || directoryExists(path);
  host.getSourceFile = (path, ...rest) => (texts.has(path) ? ts.createSourceFile(path, texts.get(path).text, rest[0], true) : getSourceFile(path, ...rest));
  const program = ts.createProgram([...texts.keys()], OPTIONS, host);
  const problems = ts.sortAndDeduplicateDiagnostics([...program.getOptionsDiagnostics(), ...program.getGlobalDiagnostics()]).map((one) => ts.flattenDiagnosticMessageText(one.messageText, '\n'));
  for (const file of files) {
    const source = program.getSourceFile(file.path);
    for (const one of [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)]) {
      const { line } = source.getLineAndCharacterOfPosition(one.start ?? 0);
      problems.push(`${file.page}:${file.numbers[line]}: ${ts.flattenDiagnosticMessageText(one.messageText, '\n')}`);
    }
  }
  return problems;
}

/** Runs the text of standard input, with types or without, as a program in this package. */
async function run() {
  const options = { ...OPTIONS, noEmit: false };
  const { outputText } = ts.transpileModule(readFileSync(0, 'utf8'), { compilerOptions: options, fileName: join(BUILD, 'program.mts') });
  mkdirSync(BUILD, { recursive: true });
  const program = join(BUILD, `${process.pid}.mjs`);
  writeFileSync(program, outputText);
  process.on('exit', () => rmSync(program, { force: true }));
  await import(pathToFileURL(program).href);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (process.argv[2] === 'run') await run();
  else {
    const named = process.argv.slice(2);
    const files = (named.length === 0 ? pages().map((page) => [page, join(ROOT, page)]) : named.map((page) => [relative(ROOT, page), page])).flatMap(([page, path]) => filesOf(page, readFileSync(path, 'utf8')));
    if (files.length === 0) throw new Error('no page has TypeScript');
    const problems = problemsOf(files);
    for (const one of problems) console.error(one);
    console.log(`${files.length} programs of the documents compiled`);
    process.exitCode = problems.length === 0 ? 0 : 1;
  }
}
