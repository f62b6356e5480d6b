// The custom endpoints of the benchmark as PocketBase has them: open to all.
// A handler sees nothing outside of itself, so reckon is put into the one that
// needs it.
routerAdd("POST", "/bench/hello", (e) => {
  const { name, a, b } = e.requestInfo().body;
  return e.json(200, { hello: `Hello, ${name}!`, sum: a + b });
});

routerAdd("POST", "/bench/order", (e) => {
  /* reckon */
  const order = e.requestInfo().body;
  const sums = reckon(order, (message) => { throw new BadRequestError(message); });
  const record = new Record($app.findCachedCollectionByNameOrId("order"));
  record.load({
    customer: order.customer, street: order.address.street, zip: order.address.zip, city: order.address.city,
    currency: order.currency, note: order.note, lines: order.lines, ...sums,
  });
  $app.save(record);
  return e.json(200, { id: record.id, ...sums });
});
