// What both workers in Node do: the payload of an order, and one byte into a file, by which jobs are counted.
const fs = require('node:fs');

exports.port = Number(process.env.BENCH_PORT);

/** About a kilobyte of JSON. */
exports.order = (number) => ({
  id: `order-${number}`,
  customer: { name: 'Ann Example', email: 'ann@example.org', address: { street: 'Long Road 17', zip: '10115', city: 'Berlin', country: 'DE' } },
  items: Array.from({ length: 8 }, (_, n) => ({ sku: `SKU-${1000 + n}`, title: `A thing of the kind ${n}`, quantity: 1 + (n % 3), price: 19.9 + n })),
  paid: true,
  note: 'leave it with the neighbour when nobody opens the door',
});

const count = process.env.BENCH_COUNT === undefined ? undefined : fs.openSync(process.env.BENCH_COUNT, 'a');

exports.work = ({ items }) => {
  const sum = items.reduce((all, { quantity, price }) => all + quantity * price, 0);
  fs.writeSync(count, '.');
  return { sum };
};

/** Milliseconds from a post until its handler is called, one job at a time. `post` is given what the handler calls. */
exports.latency = async (samples, post) => {
  const found = [];
  for (let n = 0; n < samples; n += 1) {
    const begin = performance.now();
    const called = new Promise((resolve) => {
      exports.called = () => resolve(performance.now());
    });
    const posted = post(exports.order(n));
    found.push((await called) - begin);
    await posted;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  process.stdout.write(JSON.stringify(found), () => process.exit(0));
};
